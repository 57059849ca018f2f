module narrows/go-frames

go 1.19
