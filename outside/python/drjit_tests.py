"""A plugin of pytest: of Dr.Jit's tests those run that compile for CUDA and need no OptiX."""


def is_run(item):
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return "cuda" in item.nodeid and not parameters.get("force_optix")


def pytest_collection_modifyitems(config, items):
    config.hook.pytest_deselected(items=[item for item in items if not is_run(item)])
    items[:] = [item for item in items if is_run(item)]
