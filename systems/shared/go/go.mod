module narrows/client

go 1.19
