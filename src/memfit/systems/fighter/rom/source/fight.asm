; The rules: states of a match, what fighters do, and what the opponent wants.

play:
    ld a, [STATE]
    cp FIGHT
    jp z, fight
    cp TITLE
    jr z, title
    ld hl, WAIT             ; all other states last for a time
    dec [hl]
    ret nz
    cp READY
    jr z, begin_fight
    cp ROUND_OVER
    jr z, after_round
    jr new_match            ; after the match comes another

title:
    call random             ; until someone starts, chance goes on
    ld a, [KEYS]
    bit KEY_START, a
    ret z
new_match:
    xor a
    ld [ROUND], a
    ld h, PLAYER
    ld l, WINS
    ld [hl], a
    ld h, OPPONENT
    ld [hl], a
new_round:
    ld hl, ROUND
    inc [hl]
    call place_fighters
    ld a, ROUND_TIME
    ld [SECONDS], a
    ld a, 60
    ld [FRAMES], a
    ld a, THINK_TIME
    ld [THINK], a
    ld a, READY_TIME
    ld [WAIT], a
    ld a, READY
    ld [STATE], a
    ld hl, text_ready
    jp say

place_fighters:
    ld h, PLAYER
    ld b, PLAYER_X
    call .place
    ld h, OPPONENT
    ld b, OPPONENT_X
.place:
    ld l, X
    ld [hl], b
    ld l, HEALTH
    ld [hl], FULL_HEALTH
    ld l, ACTION
    ld [hl], STAND
    ld l, CLOCK
    ld [hl], 0
    ld l, COMMAND
    ld [hl], 0
    ret

begin_fight:
    ld a, FIGHT
    ld [STATE], a
    ld hl, text_none
    jp say

after_round:
    ld a, [PLAYER << 8 | WINS]
    ld hl, text_win
    cp WINS_NEEDED
    jr z, .match_over
    ld a, [OPPONENT << 8 | WINS]
    ld hl, text_lose
    cp WINS_NEEDED
    jr nz, new_round
.match_over:
    call say
    ld a, OVER_TIME
    ld [WAIT], a
    ld a, MATCH_OVER
    ld [STATE], a
    ret

; -- one frame of a fight

fight:
    call random
    call think
    ld a, [KEYS]
    ld [PLAYER << 8 | COMMAND], a
    ld h, PLAYER
    call act
    ld a, [OPPONENT << 8 | HEALTH]
    or a
    jr z, .opponent_down
    ld h, OPPONENT
    call act
    ld a, [PLAYER << 8 | HEALTH]
    or a
    jr z, .player_down

    ld hl, FRAMES           ; the clock
    dec [hl]
    ret nz
    ld [hl], 60
    ld a, [SECONDS]
    sub 1
    daa
    ld [SECONDS], a
    ret nz
    ld hl, text_time        ; time is up: who has more health wins, if anyone
    call say
    ld a, [OPPONENT << 8 | HEALTH]
    ld b, a
    ld a, [PLAYER << 8 | HEALTH]
    ld h, PLAYER
    cp b
    jr z, .over
    jr nc, .won
    ld h, OPPONENT
    jr .won

.opponent_down:
    ld a, DOWN
    ld [OPPONENT << 8 | ACTION], a
    ld h, PLAYER
    jr .knocked_out
.player_down:
    ld a, DOWN
    ld [PLAYER << 8 | ACTION], a
    ld h, OPPONENT
.knocked_out:
    push hl
    ld hl, text_ko
    call say
    pop hl
.won:
    ld l, WINS
    inc [hl]
.over:
    ld a, OVER_TIME
    ld [WAIT], a
    ld a, ROUND_OVER
    ld [STATE], a
    ret

; -- what fighter h does

act:
    ld l, CLOCK
    ld a, [hl]
    or a
    jr z, .free
    dec [hl]
    ld a, [hl]
    jr z, .stand
    ld l, ACTION
    ld b, [hl]
    ld c, a
    ld a, b
    cp PUNCH
    jr z, .punching
    cp KICK
    ret nz
    ld a, c
    cp KICK_HITS
    ret nz
    ld b, KICK_REACH
    ld c, KICK_HARM
    jp strike
.punching:
    ld a, c
    cp PUNCH_HITS
    ret nz
    ld b, PUNCH_REACH
    ld c, PUNCH_HARM
    jp strike

.free:
    ld l, COMMAND
    ld a, [hl]
    bit KEY_A, a
    jr nz, .punch
    bit KEY_B, a
    jr nz, .kick
    bit KEY_DOWN, a
    jr nz, .block
    bit KEY_LEFT, a
    jr nz, .left
    bit KEY_RIGHT, a
    jr nz, .right
.stand:
    ld l, ACTION
    ld [hl], STAND
    ret
.punch:
    ld b, PUNCH_TIME
    ld a, PUNCH
    jr .begin
.kick:
    ld b, KICK_TIME
    ld a, KICK
.begin:
    ld l, ACTION
    ld [hl], a
    ld l, CLOCK
    ld [hl], b
    ret
.block:
    ld l, ACTION
    ld [hl], BLOCK
    ret
.left:
    ld l, ACTION
    ld [hl], WALK
    jp go_left
.right:
    ld l, ACTION
    ld [hl], WALK
    jp go_right

; LEFTMOST, RIGHTMOST: how far fighter h may go
bounds:
    ld a, h
    cp PLAYER
    jr nz, .opponent
    ld a, LEFT_WALL
    ld [LEFTMOST], a
    ld a, [OPPONENT << 8 | X]
    sub NEAREST
    ld [RIGHTMOST], a
    ret
.opponent:
    ld a, [PLAYER << 8 | X]
    add NEAREST
    ld [LEFTMOST], a
    ld a, RIGHT_WALL
    ld [RIGHTMOST], a
    ret

go_left:
    call bounds
    ld l, X
    ld a, [LEFTMOST]
    cp [hl]
    ret nc
    dec [hl]
    ret

go_right:
    call bounds
    ld l, X
    ld a, [RIGHTMOST]
    cp [hl]
    ret c
    ret z
    inc [hl]
    ret

; how far the fighters are from each other, in a
distance:
    push hl
    ld hl, PLAYER << 8 | X
    ld a, [OPPONENT << 8 | X]
    sub [hl]
    pop hl
    ret

; fighter h strikes: b is how far, c is how hard. A block leaves a quarter of it.
strike:
    call distance
    cp b
    ret nc
    ld a, h
    xor OTHER
    ld h, a
    ld l, ACTION
    ld a, [hl]
    cp BLOCK
    jr z, .blocked
    ld [hl], HURT
    ld l, CLOCK
    ld [hl], STUN_TIME
    jr .harm
.blocked:
    srl c
    srl c
.harm:
    ld l, HEALTH
    ld a, [hl]
    sub c
    jr nc, .alive
    xor a
.alive:
    ld [hl], a
    ld b, PUSH
.push:
    ld a, h
    cp PLAYER
    jr z, .push_left
    call go_right
    jr .pushed
.push_left:
    call go_left
.pushed:
    dec b
    jr nz, .push
    ret

; -- what the opponent wants: decided by chance, every THINK_TIME frames

think:
    ld hl, THINK
    dec [hl]
    ret nz
    ld [hl], THINK_TIME
    call distance
    cp NEAR
    jr c, .near
    ld a, [RANDOM]
    and 3
    ld a, 0
    jr z, .decided
    ld a, 1 << KEY_LEFT
    jr .decided
.near:
    ld a, [RANDOM]
    and 7
    ld hl, wishes
    add l
    ld l, a
    jr nc, .read
    inc h
.read:
    ld a, [hl]
.decided:
    ld [OPPONENT << 8 | COMMAND], a
    ret

wishes:
    db 1 << KEY_A, 1 << KEY_A, 1 << KEY_B, 1 << KEY_B
    db 1 << KEY_DOWN, 1 << KEY_DOWN, 1 << KEY_RIGHT, 0
