"""The env keeps Gymnasium's promises, repeats itself, and refuses what it cannot play."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from tests.systems.fighter.playing import SYMBOLS, near, of, still

from memfit.errors import UsageError
from memfit.systems.fighter.cartridge import parse_addresses, read_cartridge
from memfit.systems.fighter.env import FighterEnv
from memfit.systems.fighter.rom.build import CARTRIDGE, HEADER_CHECKSUM, header_checksum
from memfit.systems.fighter.settings import ACTIONS, FRAMES, Game


def play(env: FighterEnv, seed: int, steps: int = 120) -> tuple[np.ndarray, list[float]]:
    frame, _ = env.reset(seed=seed)
    draw = np.random.default_rng(1)
    frames, rewards = [frame], []
    for _ in range(steps):
        frame, reward, *_ = env.step(int(draw.integers(len(ACTIONS))))
        frames.append(frame)
        rewards.append(reward)
    return np.stack(frames), rewards


@pytest.mark.parametrize("frames", FRAMES)
def test_it_passes_the_env_checker(frames: str) -> None:
    env = FighterEnv(Game(frames=frames), render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    assert env.observation_space.shape == FRAMES[frames]
    assert env.render().shape == (144, 160, 3)  # type: ignore[union-attr]
    env.close()


def test_one_seed_is_one_fight_however_often_and_wherever() -> None:
    env = FighterEnv()
    first = play(env, 7)
    play(env, 8, 33)
    again = play(env, 7)
    fresh = play(FighterEnv(), 7)
    for other in (again, fresh):
        assert np.array_equal(first[0], other[0])
        assert first[1] == other[1]


def test_other_seeds_and_later_episodes_are_other_fights() -> None:
    env = FighterEnv()
    one, two = play(env, 1), play(env, 2)
    assert not np.array_equal(one[0], two[0])
    env.reset(seed=1)
    env.reset()
    later = [env.console[a] for a in env.addresses.random]
    env.reset(seed=1)
    assert later != [env.console[a] for a in env.addresses.random]


def test_frames_are_copies_and_smaller_ones_are_means() -> None:
    colour, grey, half = (FighterEnv(Game(frames=frames)) for frames in FRAMES)
    kept = colour.reset(seed=3)[0]
    before = kept.copy()
    grey_frame, half_frame = grey.reset(seed=3)[0], half.reset(seed=3)[0]
    colour.step(2)
    assert np.array_equal(kept, before)
    assert np.array_equal(grey_frame[..., 0], before[..., 0])  # a Game Boy has no colour to lose
    assert half_frame[5, 9, 0] == before[10:12, 18:20, 0].astype(int).sum() // 4


def test_reward_is_harm_done_less_harm_taken() -> None:
    env = FighterEnv(Game(frame_skip=20))
    env.reset(seed=0)
    still(env.console)
    near(env.console, 20)
    reward = env.step(3)[1]  # two punches in 20 frames, of which the second has yet to arrive
    assert reward == SYMBOLS["PUNCH_HARM"] / 64 * (
        (64 - env.console[of("OPPONENT", "HEALTH")]) // 5
    )
    assert reward > 0
    env.reset(seed=0)
    still(env.console)
    near(env.console, 20)
    env.console[of("OPPONENT", "COMMAND")] = 1 << SYMBOLS["KEY_B"]
    _, reward, _, _, info = env.step(0)
    assert reward == -SYMBOLS["KICK_HARM"] / 64
    assert info == {"health": 64 - SYMBOLS["KICK_HARM"], "opponent_health": 64}


def test_filled_bars_of_a_new_round_are_no_reward() -> None:
    env = FighterEnv()
    env.reset(seed=0)
    env.console[of("PLAYER", "HEALTH")] = 10
    env.step(0)
    env.console[SYMBOLS["STATE"]] = SYMBOLS["ROUND_OVER"]
    env.console[SYMBOLS["WAIT"]] = 1
    _, reward, _, _, info = env.step(0)
    assert (reward, info["health"]) == (0.0, 64)


def test_an_episode_ends_with_the_match_or_by_its_steps() -> None:
    for to_the_end in (False, True):
        env = FighterEnv(Game(episode_steps=3, to_the_end=to_the_end))
        env.reset(seed=0)
        env.console[SYMBOLS["STATE"]] = SYMBOLS["MATCH_OVER"]
        env.console[SYMBOLS["WAIT"]] = 50
        ends = [env.step(0)[2:4] for _ in range(3)]
        assert [truncated for _, truncated in ends] == [False, False, True]
        assert all(terminated is not to_the_end for terminated, _ in ends)


def test_a_rom_of_ones_own_has_frames_and_no_reward(tmp_path: Path) -> None:
    rom = tmp_path / "own.gb"
    rom.write_bytes(CARTRIDGE.read_bytes())
    env = FighterEnv(Game(rom=rom))
    frames, rewards = play(env, 0, 60)
    assert frames.shape == (61, 144, 160, 3) and set(rewards) == {0.0}
    env.close()
    assert list(tmp_path.iterdir()) == [rom]  # the emulator leaves nothing beside it


def test_a_rom_of_ones_own_with_addresses_and_a_savestate(tmp_path: Path) -> None:
    rom, state = tmp_path / "own.gb", tmp_path / "fight.state"
    rom.write_bytes(CARTRIDGE.read_bytes())
    ours = FighterEnv()
    ours.reset(seed=5)
    ours.console[of("PLAYER", "X")] = 70
    state.write_bytes(ours.console.save())
    addresses = CARTRIDGE.with_suffix(".toml")
    env = FighterEnv(Game(rom=rom, addresses=addresses, state=state))
    env.reset(seed=1)
    assert env.console[of("PLAYER", "X")] == 70
    assert any(play(env, 1)[1])


def broken(change: str) -> bytes:
    image = bytearray(CARTRIDGE.read_bytes())
    match change:
        case "empty":
            return b""
        case "short":
            return bytes(image[:1000])
        case "checksum":
            image[HEADER_CHECKSUM] ^= 1
        case "kind":
            image[0x147] = 0xEE
            image[HEADER_CHECKSUM] = header_checksum(image)
    return bytes(image)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("empty", "it has 0 bytes"),
        ("short", "it has 1,000 bytes, and a ROM has a multiple of 16,384. Give another file"),
        ("checksum", "the checksum of its header"),
        ("kind", "the emulator refuses this ROM"),
    ],
)
def test_what_is_no_rom_is_refused(change: str, told: str, tmp_path: Path) -> None:
    rom = tmp_path / "bad.gb"
    rom.write_bytes(broken(change))
    with pytest.raises(UsageError, match=told):
        FighterEnv(Game(rom=rom))


def test_a_rom_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no ROM .*: give the path"):
        read_cartridge(tmp_path / "none.gb")
    with pytest.raises(UsageError, match="cannot read the ROM"):
        read_cartridge(tmp_path)


def test_a_savestate_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "bad.state"
    with pytest.raises(UsageError, match="cannot read the savestate"):
        FighterEnv(Game(state=state))
    state.write_bytes(b"\x09" * 99)
    with pytest.raises(UsageError, match="make it anew"):
        FighterEnv(Game(state=state))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[reward", "cannot read the addresses"),
        ("[prize]\nx = 1", "prize is no table of addresses: give reward"),
        ("reward = 3", "reward is no table"),
        ("[reward]\nhelth = 1", "reward.helth is not known: give full_health, health"),
        ("[reward]\nhealth = 3\nopponent_health = 3\nfull_health = 3", "give a whole number from"),
        ("[reward]\nhealth = 0xC000", "reward.opponent_health is None"),
        ("[reward]\nhealth = true\nopponent_health = 0xC000\nfull_health = 3", "is True"),
        ("[episode]\naddress = 0xC000\nover = 4", "give a list of bytes"),
        ("[episode]\naddress = 0xC000\nover = [256]", "give a list of bytes"),
        ("[random]\naddress = 0xC000\nsize = 99", "random.size is 99"),
        ('[start]\nbutton = "x"', "give one of a, b, start"),
    ],
)
def test_wrong_addresses_are_refused(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "game.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=told):
        parse_addresses(file)


@pytest.mark.parametrize("changes", [{"frames": "big"}, {"frame_skip": 0}, {"episode_steps": 0}])
def test_games_that_cannot_be_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=": give "):
        Game(**changes)  # type: ignore[arg-type]
