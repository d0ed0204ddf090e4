import { isJsonObject, type JsonObject, mostValues, type PatchKind } from '../../../api/index.ts';
import { StatusError } from '../../api/api-types.ts';
import { badRequest } from '../../api/status-errors.ts';
import { tooManyValues, unsupportedMediaType } from '../http-errors.ts';
import { readMediaType } from '../media-types.ts';

/** A JSON value and its duplicate keys; of a duplicate key the last value is used. */
export interface JsonText {
  readonly value: unknown;
  /** The paths of duplicate keys, such as `spec.containers[0].image`. */
  readonly duplicates: readonly string[];
}

/** The maximum nesting depth, which limits recursion; no API object is deeper. */
const maxDepth = 128;
/** The maximum number of duplicate keys that a message lists. */
const maxDuplicates = 100;

/** Parses JSON; throws a StatusError for invalid JSON, too deep nesting and too many values. */
export function readJsonText(text: string): JsonText {
  // A text with too many values is rejected by the scan, which is much cheaper than parsing it.
  const duplicates = new KeyScanner(text).run();
  try {
    return { value: JSON.parse(text), duplicates };
  } catch (error) {
    throw badRequest(`json parse error: ${oneLine(error)}`);
  }
}

/** Runs `read` and adds the prefix to the message of a BadRequest error. */
export function withErrorPrefix<T>(prefix: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw isBadRequest(error) ? badRequest(prefix + error.message) : error;
  }
}

function isBadRequest(error: unknown): error is StatusError {
  return error instanceof StatusError && error.status.code === 400;
}

function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, 200);
}

type Level =
  | { readonly kind: 'map'; readonly keys: Set<string>; key: string }
  | { readonly kind: 'list'; index: number };

/**
 * Finds duplicate keys, and throws a StatusError for too deep nesting and too many values. The text
 * may be invalid JSON: the scan then ends with an arbitrary result.
 */
class KeyScanner {
  readonly #text: string;
  readonly #levels: Level[] = [];
  readonly #duplicates = new Set<string>();
  #expects: 'key' | 'value' = 'value';
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): readonly string[] {
    const text = this.#text;
    for (let at = 0; at < text.length; at++) {
      switch (text.charCodeAt(at)) {
        case 0x22:
          at = this.#string(at);
          break;
        case 0x7b:
          this.#open({ kind: 'map', keys: new Set(), key: '' });
          break;
        case 0x5b:
          this.#open({ kind: 'list', index: 0 });
          break;
        case 0x7d:
        case 0x5d:
          this.#levels.pop();
          this.#expects = 'value';
          break;
        case 0x2c:
          this.#next();
          break;
      }
    }
    return [...this.#duplicates];
  }

  /** Returns the index of the closing quote of a string. */
  #string(start: number): number {
    let end = this.#text.indexOf('"', start + 1);
    while (end !== -1 && isEscaped(this.#text, end)) end = this.#text.indexOf('"', end + 1);
    if (end === -1) return this.#text.length;
    if (this.#expects === 'key') this.#key(this.#text.slice(start, end + 1));
    return end;
  }

  #key(quoted: string): void {
    const level = this.#levels.at(-1);
    if (level?.kind !== 'map') return;
    level.key = quoted.includes('\\') ? unescaped(quoted) : quoted.slice(1, -1);
    if (level.keys.has(level.key) && this.#duplicates.size < maxDuplicates)
      this.#duplicates.add(pathOf(this.#levels));
    level.keys.add(level.key);
    this.#expects = 'value';
  }

  #count(): void {
    if (++this.#values > mostValues) throw tooManyValues(mostValues);
  }

  #open(level: Level): void {
    this.#count();
    if (this.#levels.push(level) > maxDepth)
      throw badRequest(`the body is nested more than ${maxDepth} deep`);
    this.#expects = level.kind === 'map' ? 'key' : 'value';
  }

  #next(): void {
    this.#count();
    const level = this.#levels.at(-1);
    if (level?.kind === 'list') level.index++;
    this.#expects = level?.kind === 'map' ? 'key' : 'value';
  }
}

/** A key with an invalid escape is kept as it is: parsing the text rejects it. */
function unescaped(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted;
  }
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes++;
  return backslashes % 2 === 1;
}

function pathOf(levels: readonly Level[]): string {
  return levels.reduce((path, level) => {
    if (level.kind === 'list') return `${path}[${level.index}]`;
    return path === '' ? level.key : `${path}.${level.key}`;
  }, '');
}

const kinds: ReadonlyMap<string, PatchKind> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
]);

/** The patch type of a content type; throws a StatusError for an unsupported one. */
export function patchKind(contentType: string | undefined): PatchKind {
  const kind = kinds.get(readMediaType(contentType ?? '')?.essence ?? '');
  if (kind === undefined) throw unsupportedMediaType([...kinds.keys()]);
  return kind;
}

export interface PatchBody extends Pick<JsonText, 'duplicates'> {
  readonly value: JsonObject | readonly unknown[];
}

/**
 * Checks that the patch is a list or an object, whichever its patch type requires; applying the
 * patch checks the rest.
 */
export function readPatch(kind: PatchKind, bytes: Buffer): PatchBody {
  const { value, duplicates } = withErrorPrefix('error decoding patch: ', () =>
    readJsonText(bytes.toString()),
  );
  if (kind === 'json' && Array.isArray(value)) return { value, duplicates };
  if (kind !== 'json' && isJsonObject(value)) return { value, duplicates };
  const must = kind === 'json' ? 'a JSON patch must be a list' : 'a patch must be an object';
  throw badRequest(`error decoding patch: ${must}`);
}
