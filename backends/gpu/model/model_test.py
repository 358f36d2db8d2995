"""The time model: what must hold between times, and terms worked out by hand."""

from dataclasses import replace
from math import ceil, prod

import pytest

from backends.gpu.model.extents import Extents
from backends.gpu.model.model import STARTED, WEIGHTS, combine, modelled, terms
from backends.gpu.model.transactions import move
from backends.gpu.plain_rules import RULES
from backends.registry import target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.machine import Rendering
from ir.nest.nest import Load
from ir.sizes import bind
from testing.samples.samples import KERNELS, decisions, spec_of, workload

CHIP = replace(target("h200"), rendering=Rendering())  # of a backend that renders all
ROWS = {"M": 4096, "K": 1024}
PRODUCT = {"M": 4096, "N": 4096, "K": 1024}


def nest_of(name, *lines, sizes, machine=CHIP):
    spec = workload(name).spec if isinstance(name, str) else name
    return lower(spec, decisions(spec, *lines), machine, sizes)


def terms_of(nest, sizes, machine=CHIP, **figures):
    (launch,) = nest.launches
    named = {f"{launch.name}.{k}": v for k, v in figures.items()}
    return terms(launch, machine, RULES, bind(nest.spec, sizes), named)


def copied(*lines, k=1024):
    spec = spec_of("y[m, k] = x[m, k] + 1.0")
    return nest_of(spec, *lines, sizes={"M": 4096, "K": k}), {"M": 4096, "K": k}


def row(size=1):
    return (f"tile(m, size={size})", "place(m.outer, level=grid)")


def product(m, n, k, *more):
    return nest_of(
        "matmul_bias_gelu",
        f"tile(m, size={m})",
        f"tile(n, size={n})",
        f"tile(k, size={k})",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
        "place(k.outer, level=loop)",
        "compute(acc, unit=matrix)",
        "precision(acc, dtype=bf16)",
        "pipeline(x, stages=3)",
        "pipeline(w, stages=3)",
        *more,
        sizes=PRODUCT,
    )


def test_bytes_of_rows_are_counted_once_and_in_whole_sectors():
    found = terms_of(*copied(*row(4)), warps=4)
    assert found["programs"] == 1024
    assert found["fetched_bytes"] == found["asked_bytes"] == 2 * 4096 * 1024 * 4
    assert found["dram_us"] == pytest.approx(1e6 * 2 * 4096 * 1024 * 4 / 4.3e12)
    ragged = terms_of(*copied(*row(4), k=1023), warps=4)
    assert 2 * 4096 * 1023 * 4 < ragged["asked_bytes"] < 1.05 * 2 * 4096 * 1024 * 4
    assert ragged["vector_us"] > 1.5 * found["vector_us"]  # an address an element, not for four


def test_the_start_of_many_programs_takes_time_that_their_work_hides_in_part():
    spec, sizes = spec_of("y[m, k] = x[m, k] + 1.0"), {"M": 1 << 16, "K": 1 << 10}
    cuts = ("tile(m, size=1)", "tile(k, size=32)", "place(m.outer, level=grid)")
    nest = nest_of(spec, *cuts, "place(k.outer, level=grid)", sizes=sizes)
    found = terms_of(nest, sizes, warps=1)
    assert found["programs_us"] == pytest.approx(1e6 * 2**21 / STARTED / 1.98e9)
    launch = WEIGHTS.launch * found["launch_us"]
    work = combine({**found, "programs_us": 0.0}) - launch
    few, many = (combine({**found, "programs_us": n * work}) - launch for n in (0.1, 2))
    assert work < few < 1.01 * work
    assert 2 * work < many < 2.5 * work


def test_a_gather_of_positions_along_several_indices_reads_an_element_for_each_of_all():
    body = "y[m, k]: [64, 64] = x[m // 2 + k % 2, (m + k) % 32]"
    spec = spec_of(body, inputs="x: f32[64, 32]", result="f32[64, 64]")
    nest = nest_of(spec, *row(4), sizes={})
    (launch,) = nest.launches
    (load,) = (s for s in launch.statements() if isinstance(s, Load))
    assert prod(Extents(launch, {}, RULES).region(load)) == 4 * 64
    assert move(load, Extents(launch, {}, RULES), 32, 128, ()).requests == 4 * 64


def test_a_guess_counts_operands_that_threads_hand_over_to_the_matrix_unit():
    ahead = product(128, 128, 64)
    kept = tuple(d for d in ahead.schedule.decisions if d.verb != "pipeline")
    held = lower(ahead.spec, replace(ahead.schedule, decisions=kept), CHIP, PRODUCT)
    known = [terms_of(nest, PRODUCT) for nest in (ahead, held)]
    assert known[0]["exchange_us"] == 0 < known[1]["exchange_us"]


def test_only_a_specialized_launch_knows_that_rows_are_aligned():
    plain, special = (
        terms_of(*copied(*row(4), *more, k=1000), warps=4) for more in ((), ("specialize(y)",))
    )
    assert special["vector_us"] < plain["vector_us"] / 1.5
    known = [terms_of(*copied(*row(4), *more), warps=4) for more in ((), ("specialize(y)",))]
    assert known[0]["vector_us"] == known[1]["vector_us"]


def test_columns_take_a_sector_for_each_element():
    column = ("tile(k, size=1)", "place(k.outer, level=grid)")
    found = terms_of(*copied(*column), warps=4)
    assert found["asked_bytes"] == 2 * 4096 * 1024 * 32


def test_taps_of_a_window_and_of_its_weights_are_touched_once():
    sizes = {"B": 64, "C": 64, "O": 64, "L": 256}
    lines = (
        "tile(b, size=1)",
        "place(b.outer, level=grid)",
        "tile(i, size=1)",
        "place(i.outer, level=loop)",
        "compute(acc, unit=matrix)",
        "precision(acc, dtype=f16)",
    )
    found = terms_of(nest_of("conv1d", *lines, sizes=sizes), sizes, warps=4)
    x, w, bias, y = 64 * 64 * 256 * 2, 64 * 64 * 3 * 2, 64 * 2, 64 * 64 * 256 * 2
    assert found["fetched_bytes"] == pytest.approx(x + w + bias + y, rel=0.02)
    once = x + 64 * (w + bias) + y
    assert once < found["asked_bytes"] < 2.2 * once  # some of it again for each tap


def test_positions_of_two_dimensions_along_one_index_are_no_rectangle():
    spec = spec_of(
        "y[b, p, q, c] = x[b, p + 1, q + 1, c]",
        inputs="x: f32[B, P + 2, Q + 2, C]",
        result="f32[B, P, Q, C]",
    )
    sizes = {"B": 64, "P": 32, "Q": 32, "C": 64}
    nest = nest_of(
        spec,
        "flatten(p, inner=q)",
        "tile(b, size=1)",
        "tile(pq, size=32)",
        "place(b.outer, level=grid)",
        "place(pq.outer, level=grid)",
        sizes=sizes,
    )
    found = terms_of(nest, sizes, warps=4)
    assert found["asked_bytes"] == pytest.approx(2 * 4 * 64 * 32 * 32 * 64, rel=0.05)


def test_tiles_that_run_together_share_what_they_read():
    found = terms_of(product(128, 128, 64), PRODUCT, warps=8, registers=128, shared_bytes=98304)
    x, w, b, y = 2 * 4096 * 1024, 2 * 4096 * 1024, 2 * 4096, 2 * 4096 * 4096
    assert found["fetched_bytes"] == x + w + b + y  # all of it fits the cache
    assert found["asked_bytes"] == 32 * (x + w) + 32 * b + y
    flops = 2 * 4096 * 4096 * 1024
    full = found["programs"] / 132
    assert found["matrix_us"] == pytest.approx(1e6 * flops / 989.4e12 * 8 / full)  # 7.76 -> 8


def test_small_tiles_move_more_and_do_not_fill_the_matrix_unit():
    large = terms_of(product(128, 128, 64), PRODUCT, warps=4)
    small = terms_of(product(32, 32, 64), PRODUCT, warps=4)
    assert small["asked_bytes"] > 3 * large["asked_bytes"]
    assert small["matrix_us"] > 1.4 * large["matrix_us"]
    assert combine(small) > combine(large)


def test_a_group_of_warps_without_rows_of_its_own_adds_nothing():
    found = [terms_of(product(64, 256, 64), PRODUCT, warps=w)["matrix_us"] for w in (4, 8)]
    assert found[1] == pytest.approx(2 * found[0])
    found = [terms_of(product(128, 256, 64), PRODUCT, warps=w)["matrix_us"] for w in (4, 8)]
    assert found[1] == pytest.approx(found[0])


def single(order, *more, k=1024, machine=CHIP):
    """The terms of a product of f32 as one of tf32, what it takes is made in the loop. order: of
    the right operand's indices."""
    inputs = f"x: f32[M, K], w: f32[{', '.join(order.upper())}]"
    equation = f"y[m, n] = sum(x[m, k] * w[{', '.join(order)}], k)"
    spec = spec_of(equation, inputs=inputs, result="f32[M, N]")
    sizes = {"M": 4096, "N": 4096, "K": k}
    nest = nest_of(
        spec,
        "tile(m, size=128)",
        "tile(n, size=128)",
        "tile(k, size=32)",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
        "place(k.outer, level=loop)",
        "compute(y, unit=matrix)",
        "precision(y, dtype=tf32)",
        *more,
        sizes=sizes,
        machine=machine,
    )
    return terms_of(nest, sizes, machine)


def test_a_wide_right_operand_that_lies_the_other_way_is_transposed():
    along, across = single("nk"), single("kn")
    assert across["shared_us"] > 2 * along["shared_us"]
    chip = target("mi300")
    along, across = single("nk", machine=chip), single("kn", machine=chip)
    assert across["shared_us"] == along["shared_us"]


def test_what_runs_ahead_a_few_bytes_at_a_time_takes_longer_than_loads_do():
    ahead = ("pipeline(x, stages=3)", "pipeline(w, stages=3)")
    assert single("nk", *ahead)["load_us"] == single("nk")["load_us"]
    assert single("nk", *ahead, k=1023)["load_us"] > 10 * single("nk", k=1023)["load_us"]


def test_what_a_product_reads_in_shared_memory_passes_it_less_often_than_what_is_made_there():
    """Copies that are rounded beforehand are loaded to where the product reads them; an operand
    that is rounded in the loop is laid out there first."""
    spec = spec_of(
        "acc[m, n] = sum(x[m, k] * w[n, k], k)",
        "y[m, n] = acc[m, n] + 1.0",
        inputs="x: f32[M, K], w: f32[N, K]",
        result="f32[M, N]",
    )
    tiles = (
        "tile(m, size=128)",
        "tile(n, size=128)",
        "tile(k, size=32)",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
        "place(k.outer, level=loop)",
        "compute(acc, unit=matrix)",
    )
    ahead = ("pipeline(x, stages=3)", "pipeline(w, stages=3)")
    copies = (
        "pack(x, order=m_k, dtype=tf32)",
        "pack(w, order=n_k, dtype=tf32)",
        "pipeline(x_mk, stages=3)",
        "pipeline(w_nk, stages=3)",
    )
    sizes = {"M": 4096, "N": 4096, "K": 1024}
    found = []
    for lines in ((*ahead, "precision(acc, dtype=tf32)"), copies):
        nest = nest_of(spec, *tiles, *lines, sizes=sizes)
        found.append(terms(nest.launches[-1], CHIP, RULES, bind(nest.spec, sizes), {})["shared_us"])
    steps = ceil(32 * 32 / CHIP.parallel) * 32  # of the busiest multiprocessor
    tile, cycle = 128 * 32 * 4 / 128, 1e6 / CHIP.details["gpu"]["clock_hz"]
    # Rounded in the loop: two tiles are copied, there and back; the right one is laid out, there
    # and back; and the product reads the left one once, the right one for each 64 rows.
    read = 1 + 2
    assert found[0] == pytest.approx(steps * tile * cycle * (2 * 2 + 2 + read), rel=0.01)
    assert found[1] == pytest.approx(steps * tile * cycle * (2 + read), rel=0.01)


def test_more_stages_hide_more_of_the_wait():
    nest = product(128, 128, 64)
    times = [terms_of(nest, PRODUCT, warps=8, stages=s)["wait_us"] for s in (1, 2, 3)]
    assert times[0] > times[1] >= times[2]


def test_registers_decide_how_many_programs_take_turns():
    nest, sizes = copied(*row())
    few = terms_of(nest, sizes, warps=4, registers=32)
    many = terms_of(nest, sizes, warps=4, registers=255)
    assert (few["resident"], many["resident"]) == (16, 2)
    assert many["rounds"] == 16 and many["wait_us"] > few["wait_us"]


def test_a_limit_of_registers_lets_a_multiprocessor_hold_more_and_spills_the_rest():
    tiles, sizes = (128, 128, 32), {"M": 1024, "K": 512, "N": 1024}
    free, kept = (
        terms_of(product(*tiles, *more), sizes) for more in ((), ("registers(y, limit=80)",))
    )
    assert kept["resident"] > free["resident"]
    assert kept["spill_us"] > free["spill_us"]


def test_a_smaller_instruction_has_a_lower_rate():
    tiles, sizes = (128, 128, 32), {"M": 1024, "K": 512, "N": 1024}
    halves = ("threads(y, count=128)",)
    large, small, narrow = (
        terms_of(product(*tiles, *halves, *more), sizes)["matrix_us"]
        for more in (
            ("instruction(acc, shape=m64n128k16)",),
            ("instruction(acc, shape=m16n8k16)",),
            ("warps(acc, m=2, n=2)",),
        )
    )
    assert small == narrow == pytest.approx(large / 0.63)


def test_blocks_of_a_cluster_ask_the_cache_once_for_what_they_share():
    lines = (128, 128, 64, "copy(x, by=bulk)", "copy(w, by=bulk)")
    alone, pairs, fours = (
        terms_of(product(*lines, *more), PRODUCT)["asked_bytes"]
        for more in ((), ("cluster(m, size=2)",), ("cluster(m, size=4)",))
    )
    blocks, tile = 32 * 32, 128 * 1024 * 2
    assert alone - pairs == blocks * tile / 2 and alone - fours == blocks * tile * 3 / 4
    odd = {**PRODUCT, "M": 31 * 128}
    assert terms_of(product(*lines, "cluster(m, size=2)"), odd) == terms_of(product(*lines), odd)


def test_the_last_round_counts_whole():
    nest, sizes = copied(*row(8))
    assert terms_of(nest, sizes, warps=16, registers=32)["rounds"] == 1
    sizes = {**sizes, "M": 8 * (132 * 4 + 1)}
    nest = nest_of(nest.spec, *row(8), sizes=sizes)
    assert terms_of(nest, sizes, warps=16, registers=32)["rounds"] == 2


def test_spills_and_issued_instructions_take_time():
    nest, sizes = copied(*row())
    assert terms_of(nest, sizes)["spill_us"] == 0
    assert terms_of(nest, sizes)["issue_us"] > 0  # a guess, where no build tells
    slow = terms_of(nest, sizes, spills=400, instructions=2000, warps=4)
    assert slow["spill_us"] > 1 and slow["issue_us"] > 1
    assert combine(slow) > combine(terms_of(nest, sizes, warps=4))
    loop = product(128, 128, 64)  # 16 iterations, where most of the text lies
    once, twice = (terms_of(loop, PRODUCT, instructions=n, warps=4) for n in (2000, 4000))
    assert twice["issue_us"] == pytest.approx(2 * once["issue_us"])
    rounds = ceil(once["programs"] / 132) * 2000 * 4 / (4 * 1.98e9)
    assert 2 < once["issue_us"] / (1e6 * rounds) < 16


def test_spills_beyond_a_units_own_cache_go_to_memory():
    nest, sizes = copied(*row())
    small, large = (terms_of(nest, sizes, spills=n, warps=32, registers=64) for n in (16, 4096))
    none = terms_of(nest, sizes, warps=32, registers=64)
    assert small["asked_bytes"] == none["asked_bytes"]
    assert large["asked_bytes"] > 2 * none["asked_bytes"]
    assert large["fetched_bytes"] > none["fetched_bytes"]


def test_loads_wait_more_often_where_registers_hold_few_of_them():
    nest, sizes = copied(*row(32))  # 256 floats a thread
    few, many = (terms_of(nest, sizes, warps=4, registers=n) for n in (40, 255))
    assert few["wait_us"] / few["rounds"] > 2 * many["wait_us"] / many["rounds"]


def test_a_guessed_build_has_registers_for_addresses_of_scattered_loads():
    even = terms_of(*copied(*row(32), k=1024))  # 256 floats a thread, four at an address
    odd = terms_of(*copied(*row(32), k=1023))
    assert odd["spill_us"] > even["spill_us"]


def test_addresses_of_results_in_rows_are_held_where_some_are_out_of_bounds():
    def resident(columns):
        spec = spec_of(
            "c[o, p, q] = sum(x[p, q, k] * w[o, k], k)",
            "y[o, p, q] = c[o, p, q] + 1.0",
            inputs=f"x: bf16[64, {columns}, 512], w: bf16[128, 512]",
            result=f"f32[128, 64, {columns}]",
        )
        tiles = ("tile(p, size=2)", "tile(q, size=64)", "tile(k, size=32)")
        places = ("place(p.outer, level=grid)", "place(k.outer, level=loop)")
        more = ("compute(c, unit=matrix)", "threads(y, count=256)")
        (launch,) = nest_of(spec, *tiles, *places, *more, sizes={}).launches
        rules = replace(RULES, holds_addresses=True)
        return terms(launch, CHIP, rules, bind(spec, {}), {})["resident"]

    assert resident(256) > resident(255)


def test_a_build_without_copies_of_their_own_hides_no_wait():
    nest = product(128, 128, 64)
    with_copies, without = (
        terms_of(nest, PRODUCT, warps=8, stages=3, **{"mix.copy_async": n})["wait_us"]
        for n in (8, 0)
    )
    assert without > 2 * with_copies
    on_registers = [
        terms_of(nest, PRODUCT, target("mi300"), warps=8, stages=3, **{"mix.copy_async": n})
        for n in (8, 0)
    ]
    assert on_registers[0] == on_registers[1]


def test_idle_threads_do_not_make_it_faster():
    nest, sizes = copied("tile(m, size=1)", "place(m.outer, level=grid)", k=64)
    few, many = (terms_of(nest, sizes, warps=w)["vector_us"] for w in (2, 8))
    assert many > few


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("chip", ["h200", "mi300"])
def test_every_kernel_has_a_time_that_is_found_fast_and_is_the_same_again(name, chip, calls):
    machine, found = target(chip), workload(name)
    nest = lower(found.spec, autoschedule(found.spec, machine, found.tune), machine, found.tune)
    first = modelled(nest, machine, RULES, found.tune, {})
    assert modelled(nest, machine, RULES, found.tune, {}) == first
    assert calls(lambda: modelled(nest, machine, RULES, found.tune, {})) < 20_000
    assert first.kind == "modelled"
    assert machine.launch_us < first.us < 1e5
    assert all(0 <= share <= 1 for share in first.engines.values())


def test_the_time_is_that_of_the_terms():
    found = terms_of(product(128, 128, 64), PRODUCT)
    timing = modelled(product(128, 128, 64), CHIP, RULES, PRODUCT, {})
    assert timing.us == combine(found, WEIGHTS)
    (launch,) = product(128, 128, 64).launches
    named = {f"{launch.name}.{k}": v for k, v in found.items()}
    busy = {f"busy_{n}": timing.figures[f"busy_{n}"] for n in ("memory", "vector", "matrix")}
    moved = {"memory_bytes": found["fetched_bytes"], "cache_bytes": found["asked_bytes"]}
    assert named | {f"{launch.name}.us": timing.us} | busy | moved == timing.figures
    shares = [timing.engines[n] for n in ("dram", "cache", "load", "fabric")]
    assert busy["busy_memory"] == max(shares)


def test_jagged_ranges_have_their_mean_length():
    sizes = {"V": 1000, "D": 64, "L": 4096, "B": 128}
    lines = (
        "tile(l, size=16)",
        "place(l.outer, level=loop)",
        "tile(b, size=1)",
        "place(b.outer, level=grid)",
    )
    found = terms_of(nest_of("embedding_bag", *lines, sizes=sizes), sizes)
    rows = 4096 * 64 * 4
    assert rows < found["asked_bytes"] < 1.2 * rows


def test_guesses_of_one_launch_at_several_sizes_and_on_several_chips_are_apart():
    spec = spec_of("y[m, k] = x[m, k] + 1.0")
    lines = ("tile(m, size=1)", "place(m.outer, level=grid)")
    nest = nest_of(spec, *lines, sizes=ROWS)
    sizes = ({"M": 4096, "K": 1024}, {"M": 4096, "K": 2048})
    before = [modelled(nest, CHIP, RULES, one, {}).us for one in sizes]
    assert before[0] < before[1]
    assert [modelled(nest, CHIP, RULES, one, {}).us for one in sizes] == before
    slower = replace(CHIP, launch_us=2 * CHIP.launch_us)
    assert modelled(nest, slower, RULES, sizes[0], {}).us > before[0]


LONG = {"M": 4096, "K": 65536}  # 132 rows are 35 MB, the cache holds 52
PASSES = (
    "tile(m, size=1)",
    "tile(k, size=4096)",
    "place(m.outer, level=grid)",
    "threads(y, count=1024)",
)
SERPENTINE, TOLD = "serpentine(k.outer)", "cache(x, hint=evict_last, last=evict_first)"


def fetched(*lines):
    """Bytes that rows read twice are fetched and stored, over their own."""
    spec = spec_of("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] / s[m]")
    nest = nest_of(spec, *PASSES, *lines, sizes=LONG)
    return terms_of(nest, LONG)["fetched_bytes"] / (4096 * 65536 * 4)


def test_serpentine_passes_find_rows_in_the_cache():
    stored = "cache(y, hint=evict_first)"
    plain, told, back = fetched(), fetched(TOLD, stored), fetched(SERPENTINE)
    both, most = fetched(SERPENTINE, TOLD), fetched(SERPENTINE, TOLD, stored)
    assert plain == pytest.approx(3, rel=0.01)
    assert fetched(stored) == plain and fetched("cache(x, hint=evict_last)") == plain
    assert 2 < most < both < back < plain
    assert most < told < plain
