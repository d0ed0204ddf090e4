import { apiError } from '../api-error.ts';
import { badPatch, unfitPatch } from './directives.ts';
import { isJsonObject, type JsonObject, sameValue } from './json.ts';

/** As many as an API server takes in one patch. */
const mostOperations = 10_000;

/** A JSON patch (RFC 6902): the operations one after the other, all of them or none. */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badPatch('a JSON patch must be a list of operations');
  if (patch.length > mostOperations)
    throw apiError({
      what: 'apply a patch',
      status: 413,
      answer: {
        reason: 'RequestEntityTooLarge',
        message: `Request entity too large: The allowed maximum operations in a JSON patch is ${mostOperations}, got ${patch.length}`,
      },
    });
  return patch.reduce<unknown>(
    (value, operation, index) => applyOperation(value, operation, index),
    document,
  );
}

function applyOperation(document: unknown, operation: unknown, index: number): unknown {
  if (!isJsonObject(operation)) throw badPatch(`operation ${index} must be an object`);
  const path = pointer(operation['path'], index);
  switch (operation['op']) {
    case 'add':
      return put(document, path, given(operation, index), 'add');
    case 'replace':
      // API servers let it put a field that is not there yet.
      at(document, path.slice(0, -1));
      return put(document, path, given(operation, index), 'replace');
    case 'remove':
      return remove(document, path);
    case 'copy':
      return put(document, path, at(document, pointer(operation['from'], index)), 'add');
    case 'move':
      return move(document, pointer(operation['from'], index), path);
    case 'test':
      if (!sameValue(at(document, path), given(operation, index)))
        throw failed(`operation ${index}: test failed`);
      return document;
    default:
      throw failed(
        `operation ${index} must be add, remove, replace, move, copy or test: it is ${JSON.stringify(operation['op'])}`,
      );
  }
}

type Path = readonly string[];

function move(document: unknown, from: Path, to: Path): unknown {
  if (from.length < to.length && from.every((part, index) => part === to[index]))
    throw failed(`/${from.join('/')} cannot be moved into itself`);
  const value = at(document, from);
  return put(remove(document, from), to, value, 'add');
}

function put(document: unknown, path: Path, value: unknown, how: 'add' | 'replace'): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (rest.length > 0) return replaceChild(document, name, (child) => put(child, rest, value, how));
  if (Array.isArray(document)) {
    const index = how === 'add' && name === '-' ? document.length : indexIn(document, name, how);
    return document.toSpliced(index, how === 'add' ? 0 : 1, value);
  }
  if (isJsonObject(document)) return withField(document, name, value);
  throw failed(`there is nothing that could have ${name}`);
}

function remove(document: unknown, path: Path): unknown {
  const [name, ...rest] = path;
  if (name === undefined) throw failed('the whole document cannot be removed');
  if (rest.length > 0) return replaceChild(document, name, (child) => remove(child, rest));
  child(document, name);
  if (Array.isArray(document)) return document.toSpliced(Number(name), 1);
  return Object.fromEntries(Object.entries(document as JsonObject).filter(([key]) => key !== name));
}

function replaceChild(document: unknown, name: string, change: (child: unknown) => unknown): unknown {
  const changed = change(child(document, name));
  return Array.isArray(document)
    ? document.with(Number(name), changed)
    : withField(document as JsonObject, name, changed);
}

function withField(object: JsonObject, name: string, value: unknown): JsonObject {
  return Object.fromEntries(new Map([...Object.entries(object), [name, value]]));
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

function given(operation: JsonObject, index: number): unknown {
  if (!Object.hasOwn(operation, 'value')) throw badPatch(`operation ${index} must have a value`);
  return operation['value'];
}

function pointer(text: unknown, index: number): Path {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')))
    throw failed(`operation ${index} must have a JSON pointer: current value is ${JSON.stringify(text)}`);
  const parts = text.split('/').slice(1);
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function failed(message: string): Error {
  return unfitPatch(`the server rejected our request due to an error in our request: ${message}`);
}
