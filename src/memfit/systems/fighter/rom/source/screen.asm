; What is seen: the scene, the status above it, and two fighters of six sprites each.

TILE_BAR     = 1            ; nine of them, with 0 to 8 columns filled
TILE_FLOOR   = 10
TILE_GROUND  = 11
TILE_WON     = 12
TILE_FENCE   = 13
TILE_DIGITS  = 16
TILE_FIGHTER = 64           ; twelve for each action
FEET         = 120          ; the line that fighters stand on
FLIPPED      = $20
PALE         = $10

draw_scene:
    ld hl, MAP + 13 * 32
    ld b, 2 * 32
    ld a, TILE_FENCE
    call fill
    ld b, 32
    ld a, TILE_FLOOR
    call fill
    ld b, 2 * 32
    ld a, TILE_GROUND
fill:
    ld [hl+], a
    dec b
    jr nz, fill
    ret

; while the screen is not being drawn: everything above the fighters
draw_status:
    ld de, MAP + 32 + 1
    ld a, [PLAYER << 8 | HEALTH]
    call draw_bar
    ld de, MAP + 32 + 11
    ld a, [OPPONENT << 8 | HEALTH]
    call draw_bar
    ld hl, MAP + 32 + 9
    ld a, [SECONDS]
    swap a
    call draw_digit
    ld a, [SECONDS]
    call draw_digit
    ld hl, MAP + 64 + 9
    ld a, [ROUND]
    call draw_digit
    ld hl, MAP + 64 + 1
    ld a, [PLAYER << 8 | WINS]
    call draw_wins
    ld hl, MAP + 64 + 17
    ld a, [OPPONENT << 8 | WINS]
    call draw_wins
    ld a, [MESSAGE]
    ld e, a
    ld a, [MESSAGE + 1]
    ld d, a
    ld hl, MAP + 6 * 32 + 4
    ld b, 12
.letter:
    ld a, [de]
    inc de
    ld [hl+], a
    dec b
    jr nz, .letter
    ret

; de: where, a: how many columns of 64 are filled
draw_bar:
    ld b, 8
.tile:
    ld c, 8
    cp 8
    jr nc, .full
    ld c, a
.full:
    sub c
    ld h, a
    ld a, c
    add TILE_BAR
    ld [de], a
    ld a, h
    inc de
    dec b
    jr nz, .tile
    ret

draw_digit:
    and $0F
    add TILE_DIGITS
    ld [hl+], a
    ret

; one mark for each round won, of two
draw_wins:
    ld b, 0
    cp 1
    jr c, .first
    ld b, TILE_WON
.first:
    ld [hl], b
    inc hl
    ld b, 0
    cp 2
    jr c, .second
    ld b, TILE_WON
.second:
    ld [hl], b
    ret

; hl: the text of twelve letters that is shown from now on
say:
    ld a, l
    ld [MESSAGE], a
    ld a, h
    ld [MESSAGE + 1], a
    ret

; both fighters into SPRITES
draw_fighters:
    ld de, SPRITES
    ld h, PLAYER
    call draw_fighter
    ld h, OPPONENT

; fighter h into the six sprites at de
draw_fighter:
    ld l, ACTION
    ld a, [hl]
    cp WALK
    jr nz, .pose
    ld l, X
    bit 3, [hl]             ; steps: two pictures by turns
    jr nz, .pose
    xor a
.pose:
    ld c, a                 ; the first tile: TILE_FIGHTER + 12 a
    add a
    add c
    add a
    add a
    add TILE_FIGHTER
    ld c, a
    ld b, FEET - 32 + 16
    call .row
    ld b, FEET - 16 + 16
.row:
    ld l, X
    ld a, [hl]
    sub 12 - 8
    ld l, a                 ; where the left sprite is; h still says who
    ld a, h
    cp PLAYER
    jr nz, .opponent
    call .sprite
    call .sprite
    jr .sprite
.opponent:                  ; looks the other way: the same tiles, from right to left
    ld a, l
    add 16
    ld l, a
    call .sprite
    call .sprite
.sprite:
    ld a, b
    ld [de], a
    inc de
    ld a, l
    ld [de], a
    inc de
    ld a, c
    ld [de], a
    inc de
    inc c
    inc c
    ld a, h
    cp PLAYER
    jr nz, .other
    xor a
    ld [de], a
    inc de
    ld a, l
    add 8
    ld l, a
    ret
.other:
    ld a, FLIPPED | PALE
    ld [de], a
    inc de
    ld a, l
    sub 8
    ld l, a
    ret

text_start:
    text "PRESS START "
text_ready:
    text "   READY    "
text_none:
    text "            "
text_ko:
    text "     KO     "
text_time:
    text "  TIME OUT  "
text_win:
    text "  YOU WIN   "
text_lose:
    text "  YOU LOSE  "

tiles:
    blob tiles
tiles_end:
