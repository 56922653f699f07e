"""The inside view: what runs in the user's own process and says who holds its memory.

Standard library only, and nothing else of memfit: every Python below `memfit run` loads these files
by their path, under the name `_memfit_inside`, whether memfit is installed there or not. numpy and
torch are used where they are loaded already, never imported.

A request is one line of JSON, `{"want": "holders", "duplicates": true, "roles":
{"stable_baselines3.VecEnv": "vector env"}, "least": 65536}`; Python objects of less than `least`
bytes count for the holder above. The answer is one JSON document:

    schema            1
    pid, python       who answers
    arrays            rows, largest first; `holder` "the rest" sums what is beyond the 200 largest
        holder        path in the words of the run: "model.rollout_buffer.observations"
        nbytes        memory held, each byte once however many views there are
        count         memory blocks of this holder
        views         further arrays or tensors that only look into these blocks
        dtype, shape  of the largest one
        library       "numpy", "torch", "jax" or "mmap"
        device        "cpu", "cuda:0"
        memory        "own", or "file" or "shared" with the mapping's name in `mapping`
        extents       [[address, bytes], ...] of the blocks of at least 64 KiB, touching ones merged
        small_bytes   the sum of the smaller blocks
        also          other paths to the same memory, the first few
    python            rows of Python objects, largest first
        holder        path, or the name of a package
        kind          "run" (objects of the run), "package" (code and tables), "unreached" (nothing
                      but C code or a waiting cycle holds them)
        nbytes        small_bytes + large_bytes
        small_bytes   objects of up to 512 bytes, which live in Python's own arenas (pymalloc)
        large_bytes   the others, which malloc holds
        objects       how many
        elements      length of the longest container of this holder, where there is one
    duplicates        findings, largest first
        kind          "same bytes", "contained", "shifted rows", "repeated frames", "narrower type"
        holders       the paths concerned
        saved_bytes   what storing it once, or narrower, would save
        evidence      a sentence; "of N sampled rows" where not everything was compared
    pools             figures of malloc, pymalloc and torch's caching allocators: see `pools`
    walk              seconds, cpu_seconds, longest_hold_seconds (the longest time for which other
                      threads had to wait for the interpreter), objects, added_bytes (what the
                      answer itself has left resident in the target), complete
    error             instead of all of this where a request cannot be answered
"""
