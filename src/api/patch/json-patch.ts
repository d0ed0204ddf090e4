import { type PatchBudget, patchTooLarge } from './budget.ts';
import { badPatch, unfitPatch } from './directives.ts';
import { isJsonObject, type JsonObject } from './json.ts';

/** The maximum number of operations; API servers have the same limit. */
const mostOperations = 10_000;
/** The maximum depth of a path. */
const longestPath = 128;
const longestShown = 100;
const movesPerStep = 100;

/** Applies a JSON patch (RFC 6902): all operations in order, or none. */
export function applyJsonPatch(document: unknown, patch: unknown, budget: PatchBudget): unknown {
  if (!Array.isArray(patch)) throw badPatch('a JSON patch must be a list of operations');
  if (patch.length > mostOperations)
    throw patchTooLarge(
      `The allowed maximum operations in a JSON patch is ${mostOperations}, got ${patch.length}`,
    );
  const draft = new Draft(document, budget);
  for (const [index, operation] of patch.entries()) applyOperation(draft, operation, index);
  return draft.root;
}

function applyOperation(draft: Draft, operation: unknown, index: number): void {
  if (!isJsonObject(operation)) throw badPatch(`operation ${index} must be an object`);
  const path = pointer(operation['path'], index);
  switch (operation['op']) {
    case 'add':
      draft.put(path, operand(operation, index), 'add');
      break;
    case 'replace':
      // A replace operation may add a missing field, as in API servers.
      draft.put(path, operand(operation, index), 'replace');
      break;
    case 'remove':
      draft.remove(path);
      break;
    case 'copy':
      draft.copy(pointer(operation['from'], index), path);
      break;
    case 'move':
      draft.move(pointer(operation['from'], index), path);
      break;
    case 'test':
      if (!draft.has(path, operand(operation, index))) throw failed(`operation ${index}: test failed`);
      break;
    default:
      throw failed(
        `operation ${index} must be add, remove, replace, move, copy or test: it is ${shown(operation['op'])}`,
      );
  }
}

type Path = readonly string[];
type Parent = unknown[] | Record<string, unknown>;

/**
 * A document during a patch. Lists and objects are copied before their first change and then
 * changed in place, so that many changes of one large list copy it only once.
 */
class Draft {
  root: unknown;
  readonly #budget: PatchBudget;
  /** The lists and objects of the document that were copied already and may be changed in place. */
  readonly #own = new WeakSet<object>();

  constructor(document: unknown, budget: PatchBudget) {
    this.root = document;
    this.#budget = budget;
  }

  put(path: Path, value: unknown, how: 'add' | 'replace'): void {
    const name = path.at(-1);
    if (name === undefined) {
      this.root = value;
      return;
    }
    const parent = this.#parentOf(path);
    if (!Array.isArray(parent)) setField(parent, name, value);
    else if (how === 'replace') parent[indexIn(parent, name, how)] = value;
    else this.#splice(parent, name === '-' ? parent.length : indexIn(parent, name, how), 0, [value]);
  }

  remove(path: Path): void {
    const name = path.at(-1);
    if (name === undefined) throw failed('the whole document cannot be removed');
    const parent = this.#parentOf(path);
    child(parent, name);
    if (Array.isArray(parent)) this.#splice(parent, Number(name), 1, []);
    else delete parent[name];
  }

  copy(from: Path, to: Path): void {
    this.put(to, this.#budget.copyOf(at(this.root, from)), 'add');
  }

  move(from: Path, to: Path): void {
    if (from.length < to.length && from.every((part, index) => part === to[index]))
      throw failed(`/${from.join('/')} cannot be moved into itself`);
    const value = at(this.root, from);
    this.remove(from);
    this.put(to, value, 'add');
  }

  has(path: Path, value: unknown): boolean {
    return this.#isSame(at(this.root, path), value);
  }

  #isSame(found: unknown, value: unknown): boolean {
    this.#budget.spend(1);
    if (Array.isArray(found) && Array.isArray(value))
      return found.length === value.length && found.every((item, index) => this.#isSame(item, value[index]));
    if (!isJsonObject(found) || !isJsonObject(value)) return Object.is(found, value);
    const names = Object.keys(found);
    this.#budget.spend(names.length);
    return (
      names.length === Object.keys(value).length &&
      names.every((name) => Object.hasOwn(value, name) && this.#isSame(found[name], value[name]))
    );
  }

  #splice(list: unknown[], index: number, removed: number, added: readonly unknown[]): void {
    this.#budget.spend((list.length - index) / movesPerStep);
    list.splice(index, removed, ...added);
  }

  /**
   * Returns the list or object that contains the last path segment, after copying it and its
   * ancestors if necessary.
   */
  #parentOf(path: Path): Parent {
    let parent = this.#owned(this.root, path[0]);
    this.root = parent;
    for (const [index, name] of path.slice(0, -1).entries()) {
      const inner = this.#owned(child(parent, name), path[index + 1]);
      if (Array.isArray(parent)) parent[Number(name)] = inner;
      else setField(parent, name, inner);
      parent = inner;
    }
    return parent;
  }

  #owned(value: unknown, expectedKey: string | undefined): Parent {
    if (typeof value !== 'object' || value === null)
      throw failed(`there is nothing that could have ${expectedKey}`);
    if (this.#own.has(value)) return value as Parent;
    const copy = Array.isArray(value) ? value.slice() : Object.fromEntries(Object.entries(value));
    this.#own.add(copy);
    return copy;
  }
}

function setField(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function at(document: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, name) => child(value, name), document);
}

function child(parent: unknown, name: string): unknown {
  if (Array.isArray(parent)) return parent[indexIn(parent, name, 'replace')];
  if (isJsonObject(parent) && Object.hasOwn(parent, name)) return parent[name];
  throw failed(`there is no ${name}`);
}

function indexIn(list: readonly unknown[], name: string, how: 'add' | 'replace'): number {
  const last = how === 'add' ? list.length : list.length - 1;
  if (!/^(?:0|[1-9]\d*)$/.test(name) || Number(name) > last)
    throw failed(`${name} must be a place in a list of ${list.length}`);
  return Number(name);
}

function operand(operation: JsonObject, index: number): unknown {
  if (!Object.hasOwn(operation, 'value')) throw badPatch(`operation ${index} must have a value`);
  return operation['value'];
}

function pointer(text: unknown, index: number): Path {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')))
    throw failed(`operation ${index} must have a JSON pointer: current value is ${shown(text)}`);
  const parts = text.split('/', longestPath + 2).slice(1);
  if (parts.length > longestPath)
    throw failed(`operation ${index} must have a JSON pointer of at most ${longestPath} parts`);
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function shown(value: unknown): string | undefined {
  return JSON.stringify(value)?.slice(0, longestShown);
}

function failed(message: string): Error {
  return unfitPatch(`the server rejected our request due to an error in our request: ${message}`);
}
