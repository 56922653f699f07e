; Where everything is in memory. fighter.toml names those that a training reads.

; -- registers of the machine
JOYPAD   = $FF00
IF_FLAGS = $FF0F
LCDC     = $FF40
STAT     = $FF41
SCY      = $FF42
SCX      = $FF43
LY       = $FF44
DMA      = $FF46
BGP      = $FF47
OBP0     = $FF48
OBP1     = $FF49
IE_FLAGS = $FFFF
VRAM     = $8000
MAP      = $9800
SEND_OAM = $FF80            ; the routine that copies the sprites; it must run from here

; -- the match
STATE    = $C000            ; one of the states below
WAIT     = $C001            ; frames until this state ends
RANDOM   = $C002            ; two bytes; never both zero
ROUND    = $C004            ; 1, 2, ...
SECONDS  = $C005            ; left in this round, as two decimal digits
FRAMES   = $C006            ; left in this second
KEYS     = $C007            ; buttons that are down: see below
DRAWN    = $C008            ; 1 when the screen has just been drawn
THINK    = $C009            ; frames until the opponent decides anew
MESSAGE  = $C00A            ; two bytes: the text in the middle of the screen
LEFTMOST = $C00C            ; how far the fighter that acts may go
RIGHTMOST = $C00D

; -- the fighters: one page of memory each, so that h says who and l says what
PLAYER   = $C1
OPPONENT = $C2
OTHER    = PLAYER + OPPONENT - 2 * (PLAYER & OPPONENT)   ; h xor OTHER is the one he fights
X        = $00              ; the middle of the fighter, in pixels
HEALTH   = $01              ; 0 to FULL_HEALTH
ACTION   = $02              ; what he does: see below
CLOCK    = $03              ; frames until he is free to do something else
WINS     = $04              ; rounds won
COMMAND  = $05              ; buttons, of the player or of the opponent's own

SPRITES  = $C300            ; copied to the screen's own memory in each frame

; -- states of a match
TITLE      = 0
READY      = 1
FIGHT      = 2
ROUND_OVER = 3
MATCH_OVER = 4

; -- actions; each has its picture
STAND = 0
WALK  = 1
PUNCH = 2
KICK  = 3
BLOCK = 4
HURT  = 5
DOWN  = 6

; -- buttons
KEY_RIGHT = 0
KEY_LEFT  = 1
KEY_UP    = 2
KEY_DOWN  = 3
KEY_A     = 4
KEY_B     = 5
KEY_START = 7

; -- rules
FULL_HEALTH = 64
WINS_NEEDED = 2
ROUND_TIME  = $30           ; seconds, decimal digits
PLAYER_X    = 44
OPPONENT_X  = 116
LEFT_WALL   = 16
RIGHT_WALL  = 144
NEAREST     = 18            ; fighters do not come closer than this
PUNCH_TIME  = 10            ; frames that a punch takes
PUNCH_HITS  = 6             ; left when it arrives
PUNCH_REACH = 30
PUNCH_HARM  = 5
KICK_TIME   = 32
KICK_HITS   = 14
KICK_REACH  = 34
KICK_HARM   = 8
STUN_TIME   = 8             ; frames that a hit fighter can do nothing
PUSH        = 5             ; pixels that a blow drives back
READY_TIME  = 30
OVER_TIME   = 50
THINK_TIME  = 8
NEAR        = 36            ; at this distance the opponent fights
