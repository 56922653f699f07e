; The cartridge: its entry, its header, and the loop that runs once a frame.

    org $0040               ; the screen has been drawn
    jp drawn

    org $0100
    nop
    jp start

    org $0104
    ds 48                   ; a logo that is not ours to give; emulators do not need it
    org $0134
    blob title              ; 16 bytes
    db 0, 0, 0              ; licensee, no further machine
    db 0, 0, 0              ; no bank controller, 32 KiB, no RAM in the cartridge
    db 1, $33, 0            ; not of Japan, licensee above, version 0
    ds 3                    ; checksums, put in by the build

    org $0150
start:
    di
    ld sp, $FFFE
.until_drawn:
    ldh a, [LY]
    cp 144
    jr c, .until_drawn
    xor a
    ldh [LCDC], a           ; the screen is off: its memory is ours
    ldh [SCX], a
    ldh [SCY], a
    ld hl, $C000
    ld bc, $0400
    call clear
    ld hl, VRAM
    ld bc, $2000
    call clear
    ld hl, VRAM
    ld de, tiles
    ld bc, tiles_end - tiles
    call copy
    ld hl, SEND_OAM
    ld de, send_oam
    ld bc, send_oam_end - send_oam
    call copy
    ld a, %11100100
    ldh [BGP], a
    ldh [OBP0], a
    ld a, %10010000         ; the opponent is paler
    ldh [OBP1], a
    ld a, $E1
    ld [RANDOM], a
    ld a, $AC
    ld [RANDOM + 1], a
    call place_fighters
    call draw_scene
    ld hl, text_start
    call say
    call SEND_OAM
    ld a, %10010111         ; screen, background, sprites of 8 x 16
    ldh [LCDC], a
    xor a
    ldh [IF_FLAGS], a
    ld a, 1
    ldh [IE_FLAGS], a
    ei

main:
    halt
    nop
    ld a, [DRAWN]
    or a
    jr z, main
    xor a
    ld [DRAWN], a
    call SEND_OAM
    call draw_status
    call read_keys
    call play
    call draw_fighters
    jr main

drawn:
    push af
    ld a, 1
    ld [DRAWN], a
    pop af
    reti

; KEYS: the buttons that are down
read_keys:
    ld a, $20
    ldh [JOYPAD], a         ; directions
    ldh a, [JOYPAD]
    ldh a, [JOYPAD]
    cpl
    and $0F
    ld b, a
    ld a, $10
    ldh [JOYPAD], a         ; buttons
    ldh a, [JOYPAD]
    ldh a, [JOYPAD]
    cpl
    and $0F
    swap a
    or b
    ld [KEYS], a
    ld a, $30
    ldh [JOYPAD], a
    ret

; RANDOM: one step of a shift register with 65,535 states; its low byte in a
random:
    ld a, [RANDOM + 1]
    srl a
    ld b, a
    ld a, [RANDOM]
    rra
    ld [RANDOM], a
    ld a, b
    jr nc, .even
    xor $B4
.even:
    ld [RANDOM + 1], a
    ld a, [RANDOM]
    ret

; hl: where, bc: how many
clear:
    xor a
    ld [hl+], a
    dec bc
    ld a, b
    or c
    jr nz, clear
    ret

; hl: to, de: from, bc: how many
copy:
    ld a, [de]
    ld [hl+], a
    inc de
    dec bc
    ld a, b
    or c
    jr nz, copy
    ret

send_oam:                   ; runs at SEND_OAM: while sprites are copied, only that memory is there
    ld a, high(SPRITES)
    ldh [DMA], a
    ld a, 40
.until_sent:
    dec a
    jr nz, .until_sent
    ret
send_oam_end:
