module narrows/go-http

go 1.19

require golang.org/x/net v0.35.0

require golang.org/x/text v0.22.0 // indirect
