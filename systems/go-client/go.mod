module narrows/go-client

go 1.19

require narrows/client v0.0.0

replace narrows/client => ../shared/go
