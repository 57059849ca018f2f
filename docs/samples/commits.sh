# Makes the repository of docs/commits.md: a server of two commits, of which the second waits 200 us before it answers.
set -e
git init -q -b main server
cd server
git config user.name 'A developer'
git config user.email developer@localhost
printf 'module server\n\ngo 1.19\n' > go.mod
echo server > .gitignore
cat > main.go <<'GO'
package main

import (
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("ok"))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
GO
git add -A
git commit -q -m 'A server'
git tag v1
sed -i 's/"os"/"os"\n\t"time"/; s/w.Write/time.Sleep(200 * time.Microsecond)\n\t\tw.Write/' main.go
git commit -q -a -m 'It waits'
