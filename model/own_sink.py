"""The sink that commits by itself: in its plain form each token is taken once; the Delta-like one has a single number,
which only grows, and skips a write below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from model import second_sink
from model.state import Token, Written, written_under

if TYPE_CHECKING:
    from model.turn import Turn


def burn(turn: Turn) -> None:
    """Make the token of an open run unusable, or find that its rows have landed."""
    if turn.configuration.is_delta:
        _burn_number(turn)
    else:
        _burn_token(turn)


def _burn_token(turn: Turn) -> None:
    token = _open_token(turn)
    written = written_under(turn.state, token)
    settling = turn.driver._replace(step="settle", found=None)
    if written and written.rows is not None:
        turn.go(f"finds rows under {tuple(token)} in the sink", settling._replace(found=token))
    elif written or not turn.keeps("burn"):
        turn.go(f"asks the sink: no rows under {tuple(token)}", settling)
    else:
        burned = turn.state._replace(own_sink=turn.state.own_sink | {Written(token, None)})
        turn.go(f"burns {tuple(token)} in the sink", settling, burned)


def _burn_number(turn: Turn) -> None:
    """Burn every older fence, then look; without `dl_look` the other way round."""
    if turn.keeps("dl_look"):
        _write_burn(turn, then="look for rows")
        return
    landed = _landed(turn)
    label = _looked(turn, landed)
    if landed:
        turn.go(label, turn.driver._replace(step="settle", found=landed))
    else:
        turn.go(label, turn.driver._replace(step="burn late"))


def burn_late(turn: Turn) -> None:
    """Burn after having looked (`dl_look` switched off)."""
    _write_burn(turn, then="settle")


def _write_burn(turn: Turn, then: str) -> None:
    driver, state = turn.driver, turn.state
    if any(written.token.fence > driver.fence for written in state.own_sink):
        turn.end("the sink has seen a newer fence")
        return
    number = driver.fence - 0.5 if turn.keeps("dl_double") else driver.fence
    token = Token(driver.epoch, driver.run_number, number)
    burned = state._replace(own_sink=state.own_sink | {Written(token, None)})
    turn.go("burns every older fence in the sink", driver._replace(step=then, found=None), burned)


def look_for_rows(turn: Turn) -> None:
    """See, after the burn, whether the older token had landed."""
    landed = _landed(turn)
    step = "burn second" if second_sink.is_looked_at(turn) else "settle"
    turn.go(_looked(turn, landed), turn.driver._replace(step=step, found=landed))


def _open_token(turn: Turn) -> Token:
    run = turn.open_run
    return Token(run.epoch, run.number, run.fence)


def _landed(turn: Turn) -> Token | None:
    token = _open_token(turn)
    has_rows = any(each.token == token and each.rows is not None for each in turn.state.own_sink)
    return token if has_rows else None


def _looked(turn: Turn, landed: Token | None) -> str:
    return f"looks for rows under {tuple(_open_token(turn))}: {'found' if landed else 'none'}"


def write(turn: Turn) -> None:
    """Write under the own token."""
    driver, state = turn.driver, turn.state
    token = Token(driver.epoch, driver.run_number, driver.fence)
    written = written_under(state, token)
    step = "commit" if turn.keeps("staged_first") else "stage 0"
    step = "write second sink" if turn.configuration.has_second else step
    if turn.configuration.is_delta and any(each.token.fence >= driver.fence for each in state.own_sink):
        turn.go("the sink skips the write, without a word", driver._replace(step=step))
    elif written:
        turn.end(f"the sink refuses {tuple(token)}: {'burned' if written.rows is None else 'taken'}")
    else:
        _write(turn, token, step)


def _write(turn: Turn, token: Token, step: str) -> None:
    driver, state = turn.driver, turn.state
    landed = state._replace(own_sink=state.own_sink | {Written(token, driver.rows)})
    label = f"the sink commits {sorted(driver.rows)} under {tuple(token)}"
    turn.go(label, driver._replace(step=step), landed)
    if turn.may_raise:
        turn.go(f"{label}, then an EXCEPTION", driver._replace(step="fail"), landed)


STEPS: dict[str, Callable[[Turn], None]] = {
    "burn": burn,
    "burn late": burn_late,
    "look for rows": look_for_rows,
    "write own sink": write,
    **second_sink.STEPS,
}
