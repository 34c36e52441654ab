do { var t = 0; for (let i = 0; i < 1e8; i++) t += i % 7 } while (process.argv[2] == "on")
