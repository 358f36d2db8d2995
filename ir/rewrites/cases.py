"""Cases: for each rewrite a spec, and the equations of what it gives."""

X, XC, R, S = "x: f32[M, K]", "x: f32[M, K], c: f32[M]", "f32[M, K]", "f32[M]"

# A rewrite, the signature of a spec, what it returns, its equations; those of what is found.
CASES = (
    (
        "inline_pointwise", X, R,
        "z[m, k] = exp(x[m, k]); y[m, k] = z[m, k] + z[m, k]",
        ["y[m, k] = exp(x[m, k]) + exp(x[m, k])"],
    ),
    (
        "recompute", X, R,
        "t[m] = sum(x[m, k], k); u[m] = t[m] ** 2; y[m, k] = x[m, k] * t[m] + u[m]",
        ["t[m] = sum(x[m, k], k)", "u[m] = t[m] ** 2", "t_copy[m] = sum(x[m, k], k)",
         "y[m, k] = x[m, k] * t_copy[m] + u[m]"],
    ),
    (
        "share_equal", X, S,
        "t[m] = sum(x[m, k], k); u[n] = sum(x[n, j], j); y[m] = t[m] * u[m]",
        ["t[m] = sum(x[m, k], k)", "y[m] = t[m] * t[m]"],
    ),
    (
        "name_common", X, R,
        "s[m] = sum(tanh(x[m, k]), k); y[m, k] = tanh(x[m, k]) / s[m]",
        ["s_common[m, k] = tanh(x[m, k])", "s[m] = sum(s_common[m, k], k)",
         "y[m, k] = s_common[m, k] / s[m]"],
    ),
    (
        "name_part", XC, R, "y[m, k] = x[m, k] * exp(c[m])",
        ["y_part[m] = exp(c[m])", "y[m, k] = x[m, k] * y_part[m]"],
    ),
    (
        "hoist_factor", XC, S, "y[m] = sum(c[m] * x[m, k] * 2.0, k)",
        ["y_sum[m] = sum(x[m, k], k)", "y[m] = c[m] * 2.0 * y_sum[m]"],
    ),
    (
        "hoist_factor", XC, S, "y[m] = sum(x[m, k] / c[m], k)",
        ["y_sum[m] = sum(x[m, k], k)", "y[m] = y_sum[m] / c[m]"],
    ),
    (
        "hoist_factor", XC, S, "y[m] = max(exp(c[m]) * x[m, k], k)",
        ["y_max[m] = max(x[m, k], k)", "y[m] = exp(c[m]) * y_max[m]"],
    ),
    (
        "hoist_factor", XC, S, "y_sum[m] = c[m] + 1.0; y[m] = sum(y_sum[m] * x[m, k], k)",
        ["y_sum[m] = c[m] + 1.0", "y_sum_2[m] = sum(x[m, k], k)", "y[m] = y_sum[m] * y_sum_2[m]"],
    ),
    (
        "hoist_term", XC, S, "y[m] = min(x[m, k] - c[m], k)",
        ["y_min[m] = min(x[m, k], k)", "y[m] = y_min[m] - c[m]"],
    ),
    (
        "sink_factor", XC, S, "u[m] = sum(x[m, k], k); y[m] = c[m] * u[m]",
        ["y[m] = sum(c[m] * x[m, k], k)"],
    ),
    (
        "sink_factor", XC, S, "u[m] = sum(x[m, k], k); y[m] = u[m] / c[m]",
        ["y[m] = sum(x[m, k] / c[m], k)"],
    ),
    (
        "collect_factor", XC, R, "y[m, k] = x[m, k] * c[m] + c[m] * 2.0",
        ["y[m, k] = (x[m, k] + 2.0) * c[m]"],
    ),
    (
        "distribute_factor", XC, R, "y[m, k] = (x[m, k] - 1.0) / c[m]",
        ["y[m, k] = x[m, k] / c[m] - 1.0 / c[m]"],
    ),
    (
        "reassociate", "x: f32[M, K], z: f32[M, K]", R,
        "t[k, j] = sum(x[i, k] * z[i, j], i); y[m, j] = sum(x[m, k] * t[k, j], k)",
        ["t_again[m, i] = sum(x[m, k] * x[i, k], k)", "y[m, j] = sum(t_again[m, i] * z[i, j], i)"],
    ),
    (
        "split_reduction", "x: f32[M, 256]", S, "y[m] = sum(x[m, k], k)",
        ["y_parts[m, k_part]: [M, 2] = sum(pad(x[m, 128 * k_part + k_in], 0.0), k_in=128)",
         "y[m] = sum(y_parts[m, k_part], k_part)"],
    ),
    (
        "nest_reduction", "x: f32[M, K, 3]", S, "y[m] = sum(x[m, k, i], k, i)",
        ["y_inner[m, i] = sum(x[m, k, i], k)", "y[m] = sum(y_inner[m, i], i)",
         "y_inner[m, k] = sum(x[m, k, i], i)", "y[m] = sum(y_inner[m, k], k)"],
    ),
    (
        "merge_reductions", "x: f32[M, J, K]", S,
        "t[m, j] = max(x[m, j, k], k); y[m] = max(t[m, j], j)",
        ["y[m] = max(x[m, j, k], j, k)"],
    ),
    (
        "part_sum", "x: f32[M, K], a: f32[K]", S, "y[m] = sum(x[m, k] * a[k] + x[m, k], k)",
        ["y_left[m] = sum(x[m, k] * a[k], k)", "y_right[m] = sum(x[m, k], k)",
         "y[m] = y_left[m] + y_right[m]"],
    ),
    (
        "join_sums", "x: f32[M, K], z: f32[M, K]", S,
        "a[m] = sum(x[m, k], k); b[m] = sum(z[m, k], k); y[m] = a[m] - b[m]",
        ["y[m] = sum(x[m, k] - z[m, k], k)"],
    ),
    (
        "expand_square", XC, S, "y[m] = sum((x[m, k] - c[m]) ** 2, k)",
        ["y_squares[m] = sum(x[m, k] ** 2, k)", "y_sum[m] = sum(x[m, k], k)",
         "y[m] = y_squares[m] - 2 * c[m] * y_sum[m] + K * c[m] ** 2"],
    ),
    (
        "shift_square", XC, S, "y[m] = sum(square(x[m, k] - c[m]), k)",
        ["y_origin[m] = x[m, 0]", "y_squares[m] = sum((x[m, k] - y_origin[m]) ** 2, k)",
         "y_sum[m] = sum(x[m, k] - y_origin[m], k)",
         "y[m] = y_squares[m] - 2 * (c[m] - y_origin[m]) * y_sum[m] "
         "+ K * (c[m] - y_origin[m]) ** 2"],
    ),
    (
        "merge_deviations", "x: f32[M, 200], c: f32[M]", S, "y[m] = sum((x[m, k] - c[m]) ** 2, k)",
        ["y_part[m, k_part]: [M, 2] = sum(where(128 * k_part + k_in < 200, "
         "pad(x[m, 128 * k_part + k_in], 0.0), 0.0), k_in=128)",
         "y_mean[m, k_part]: [M, 2] = y_part[m, k_part] / minimum(128, 200 - 128 * k_part)",
         "y_apart[m, k_part]: [M, 2] = sum(where(128 * k_part + k_in < 200, "
         "(pad(x[m, 128 * k_part + k_in], 0.0) - y_mean[m, k_part]) * "
         "(pad(x[m, 128 * k_part + k_in], 0.0) - y_mean[m, k_part]), 0.0), k_in=128)",
         "y[m] = sum(y_apart[m, k_part] + minimum(128, 200 - 128 * k_part) * "
         "(y_mean[m, k_part] - c[m]) ** 2, k_part)"],
    ),
    (
        "subtract_maximum", X, R,
        "e[m, k] = exp(x[m, k]); s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / s[m]",
        ["e_max[m] = max(x[m, k], k)", "e[m, k] = exp(x[m, k] - e_max[m])",
         "s[m] = sum(e[m, k], k)", "y[m, k] = e[m, k] / s[m]"],
    ),
    (
        "drop_maximum", X, R,
        "z[m, k] = 30.0 * tanh(x[m, k]); mx[m] = max(z[m, k], k); "
        "e[m, k] = exp(z[m, k] - mx[m]); s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / s[m]",
        ["z[m, k] = 30.0 * tanh(x[m, k])", "e[m, k] = exp(z[m, k])", "s[m] = sum(e[m, k], k)",
         "y[m, k] = e[m, k] / s[m]"],
    ),
    (
        "multiply_reciprocal", XC, R, "y[m, k] = x[m, k] / c[m]",
        ["y_reciprocal[m] = 1.0 / c[m]", "y[m, k] = x[m, k] * y_reciprocal[m]"],
    ),
    ("multiply_reciprocal", X, R, "y[m, k] = x[m, k] / 4", ["y[m, k] = x[m, k] * 0.25"]),
    ("reduce_power", X, R, "y[m, k] = x[m, k] ** 3", ["y[m, k] = x[m, k] * x[m, k] * x[m, k]"]),
    ("reduce_power", X, R, "y[m, k] = x[m, k] ** 0.5", ["y[m, k] = sqrt(x[m, k])"]),
    ("reduce_power", X, R, "y[m, k] = x[m, k] ** -1", ["y[m, k] = 1.0 / x[m, k]"]),
    ("reduce_power", X, R, "y[m, k] = 1.0 / sqrt(x[m, k])", ["y[m, k] = rsqrt(x[m, k])"]),
    (
        "in_powers_of_two", X, R, "y[m, k] = exp(x[m, k])",
        ["y[m, k] = exp2(x[m, k] * 1.4426950408889634)"],
    ),
    (
        "in_powers_of_two", X, R, "y[m, k] = log(x[m, k])",
        ["y[m, k] = log2(x[m, k]) * 0.6931471805599453"],
    ),
    (
        "name_activation", X, R, "y[m, k] = x[m, k] / (1.0 + exp(-x[m, k]))",
        ["y[m, k] = silu(x[m, k])"],
    ),
    (
        "name_activation", X, R, "y[m, k] = 1.0 / (exp(-x[m, k]) + 1.0)",
        ["y[m, k] = sigmoid(x[m, k])"],
    ),
    ("name_activation", X, R, "y[m, k] = maximum(x[m, k], 0.0)", ["y[m, k] = relu(x[m, k])"]),
    (
        "write_activation", X, R, "y[m, k] = silu(x[m, k])",
        ["y[m, k] = x[m, k] * sigmoid(x[m, k])"],
    ),
    (
        "join_exponentials", XC, R, "y[m, k] = exp(x[m, k]) / exp(c[m])",
        ["y[m, k] = exp(x[m, k] - c[m])"],
    ),
    (
        "part_logarithm", X, R,
        "e[m, k] = exp(x[m, k]); s[m] = sum(e[m, k], k); y[m, k] = log(e[m, k] / s[m])",
        ["e[m, k] = exp(x[m, k])", "s[m] = sum(e[m, k], k)", "y[m, k] = log(e[m, k]) - log(s[m])"],
    ),
    (
        "pack_input", "w: f32[K, M], x: f32[K]", S, "y[m] = sum(w[k, m] * x[k], k)",
        ["w_packed[w_1, w_0]: [M, K] = w[w_0, w_1]", "y[m] = sum(w_packed[m, k] * x[k], k)"],
    ),
    (
        "reorder_tensor", X, "f32[K]", "t[m, k] = exp(x[m, k]); y[k] = sum(t[m, k], m)",
        ["t[k, m] = exp(x[m, k])", "y[k] = sum(t[k, m], m)"],
    ),
)  # fmt: skip
