"""The game: its source, what builds it, and the built cartridge `fighter.gb`.

`python -m memfit.systems.fighter.rom.build` makes the cartridge from `source/`.
"""
