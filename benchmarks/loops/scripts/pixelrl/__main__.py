"""Start the training."""

from pixelrl.train import main

if __name__ == "__main__":
    main()
