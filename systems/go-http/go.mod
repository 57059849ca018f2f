module narrows/go-http

go 1.19
