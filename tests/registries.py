"""Finds registries: module-level containers that other modules fill when they are imported.

Such a module knows, through its registry, what imports it: an arrow against the imports.
"""

import ast

MUTATORS = {"append", "add", "update", "setdefault", "extend", "insert", "__setitem__"}
STORES = {"enter_into"}
"""Functions of the package that write into the container that is their first argument."""


def written(node):
    """Yield (container, value) for each write of one node: ``T[k] = v``, ``T.add(v)``, ``m.x = v``.

    ``value`` is a node that mentions what is written.
    """
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                yield _container(target.value), node
            elif isinstance(target, ast.Attribute):
                yield target, node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in MUTATORS:
            yield _container(node.func.value), ast.Tuple([*node.args, *node.keywords])
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in STORES and node.args:
            yield node.args[0], ast.Tuple(node.args[1:])


def _container(node):
    """What a part is of: T for ``T[k]`` and ``T.setdefault(k, {})``."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def run_at_import(tree):
    """Yield the nodes of a module that run when it is imported."""
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            todo += node.decorator_list
        elif not isinstance(node, ast.Lambda):
            todo += ast.iter_child_nodes(node)


class Modules:
    """The modules of a package, by dotted name, and what their names mean.

    ``imports`` are, for each module, the (module, name) that its names are imported from; the name
    is None for a module.
    """

    def __init__(self, trees):
        self.trees = trees
        self.imports = {module: self._imports(tree) for module, tree in trees.items()}
        self.variables = {module: self._variables(tree) for module, tree in trees.items()}

    def _imports(self, tree):
        names = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    what = (full, None) if full in self.trees else (node.module, alias.name)
                    names[alias.asname or alias.name] = what
        return names

    @staticmethod
    def _variables(tree):
        targets = []
        for node in tree.body:
            if isinstance(node, ast.Assign):
                targets += node.targets
            elif isinstance(node, ast.AnnAssign):
                targets.append(node.target)
        return {target.id for target in targets if isinstance(target, ast.Name)}

    def meant(self, module, node):
        """The (module, name) of a variable or function of the package that a node names."""
        if isinstance(node, ast.Name):
            found = self.imports[module].get(node.id, (module, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home, name = self.imports[module].get(node.value.id, (None, ""))
            found = (home, node.attr if name is None else None)
        else:
            return None
        return found if found[0] in self.trees and found[1] else None

    def registering(self):
        """For each function that stores what it is given: the module-level containers."""
        found = {}
        for module, tree in self.trees.items():
            for function in tree.body:
                if not isinstance(function, ast.FunctionDef):
                    continue
                inside = list(ast.walk(function))
                given = {node.arg for node in inside if isinstance(node, ast.arg)}
                for container, value in (pair for node in inside for pair in written(node)):
                    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
                    registry = self.meant(module, container)
                    if registry and names & given and registry[1] in self.variables[registry[0]]:
                        found.setdefault((module, function.name), set()).add(registry)
        return found


def registries(trees):
    """The containers that other modules fill, as ``module.NAME``: who fills them."""
    modules = Modules(trees)
    registering = modules.registering()
    found = {}
    for module, tree in trees.items():
        for node in run_at_import(tree):
            filled = {modules.meant(module, container) for container, _ in written(node)}
            called = node.func if isinstance(node, ast.Call) else node
            filled |= registering.get(modules.meant(module, called), set())
            for registry in filled - {None}:
                if registry[0] != module and registry[1] in modules.variables[registry[0]]:
                    found.setdefault(".".join(registry), set()).add(module)
    return found


def named_functions(trees):
    """Where code compares the name of a function with that of one of the package's own.

    Those are private functions, and those with a record (``own_op``).
    """
    own = {
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and (node.name.startswith("_") or "own_op" in map(_decorator, node.decorator_list))
    }
    found = []
    for module, tree in trees.items():
        tables = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        } | {
            node.target.id: node.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        for node in ast.walk(tree):
            sides = _compared(node)
            if not any(_is_name(side) for side in sides):
                continue
            sides += [tables[s.id] for s in sides if isinstance(s, ast.Name) and s.id in tables]
            if any(text in own for side in sides for text in _texts(side)):
                found.append(f"{module}:{node.lineno}")
    return found


def _decorator(node):
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _compared(node):
    """What a node compares, or looks up in what."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript):
        return [node.value, node.slice]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return [node.func.value, node.args[0]] if node.func.attr == "get" else []
    return []


def _is_name(node):
    """Whether an expression is the name of a function."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("__name__", "__qualname__")
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    if node.func.id == "getattr":
        return ast.unparse(node.args[1]) in ("'__name__'", "'__qualname__'")
    return node.func.id in ("own_function", "function_name")


def _texts(node):
    """The strings in a constant, or among the items of a set or the keys of a table."""
    if isinstance(node, ast.Dict):
        node = ast.Tuple([key for key in node.keys if key is not None])
    if isinstance(node, (ast.Constant, ast.Tuple, ast.Set, ast.List)):
        return {c.value for c in ast.walk(node) if isinstance(c, ast.Constant)}
    return set()
