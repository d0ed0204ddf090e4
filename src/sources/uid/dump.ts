import { KubelingError, type YamlTree } from '../../lib/index.ts';
import { podTypes } from './internal-pod-types.ts';
import {
  dumpQuantity,
  entryOf,
  type HeldQuantity,
  heldToMilli,
  holdWritten,
  isWritten,
  textOf,
} from './internal-quantity.ts';

/**
 * Dumps a value of one type. `written` is the part of the manifest from which the value was
 * decoded.
 */
type Dump = (value: unknown, written: YamlTree | undefined) => string;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Dumps values as text with all fields of their types, empty or not, and with type names, like the
 * Go kubelet before it hashes a pod. The dumper of a type is built on first use, because most types
 * are never used.
 */
export class TypeDumper {
  readonly #lines: ReadonlyMap<string, string>;
  readonly #known: Map<string, Dump>;

  constructor(types: string = podTypes) {
    const lines = types.trim().split('\n');
    this.#lines = new Map(lines.map((line) => [line.slice(0, line.indexOf(' ')), line]));
    this.#known = new Map(Object.entries(plainTypes));
  }

  /**
   * Dumps a value of a type in the table; the value is in the internal representation (see
   * `toInternalPod`).
   */
  dump(type: string, value: unknown, written: YamlTree): string {
    if (!this.#lines.has(type))
      throw new KubelingError('BUG', `Cannot dump the type ${type}: it is not in the table of types`);
    return `(*${goName(type)})${this.#dumpOf(type)(value, written)}`;
  }

  #dumpOf(type: string): Dump {
    const known = this.#known.get(type);
    if (known !== undefined) return known;
    const dump = this.#create(type);
    this.#known.set(type, dump);
    return dump;
  }

  #create(type: string): Dump {
    if (type.startsWith('?')) return writtenDump(this.#dumpOf(type.slice(1)));
    if (type.startsWith('*')) return pointerDump(() => this.#dumpOf(type.slice(1)));
    if (type.startsWith('[]')) return listDump(() => this.#dumpOf(type.slice(2)));
    if (type.startsWith('map[')) return mapDump(() => this.#dumpOf(type.slice(type.indexOf(']') + 1)));
    const line = this.#lines.get(type);
    return line === undefined ? plainDump : this.#structDump(line);
  }

  /**
   * Builds the dumper of a struct. The dump of an empty field is computed once, because most fields
   * are empty.
   */
  #structDump(line: string): Dump {
    const fields = line
      .split(' ')
      .slice(1)
      .map((text) => this.#field(text));
    const empty = `{${fields.map(({ none }) => none).join(' ')}}`;
    return (value, written) => {
      if (value === undefined) return empty;
      let shown = '{';
      for (const { prefix, json, dump, none } of fields) {
        if (shown.length > 1) shown += ' ';
        const part = json === undefined ? value : (value as Fields)[json];
        if (part === undefined) shown += none;
        else shown += prefix + dump(part, json === undefined ? written : entryOf(written, json));
      }
      return `${shown}}`;
    };
  }

  #field(text: string): DumpField {
    const [, name = '', inline, json, type = 'string'] = fieldShape.exec(text) ?? [];
    const full = inline === undefined ? type : inline || name;
    const prefix = `${name}:(${goName(full.replace('?', ''))})`;
    const dump = this.#dumpOf(full);
    const key = inline === undefined ? (json ?? jsonName(name)) : undefined;
    return { prefix, json: key, dump, none: prefix + dump(undefined, undefined) };
  }
}

interface DumpField {
  readonly prefix: string;
  /** JSON name of the field; undefined when its fields are inlined into the embedding type. */
  readonly json: string | undefined;
  readonly dump: Dump;
  /** Text that is dumped when the field is unset. */
  readonly none: string;
}

const fieldShape = /^(\w+)(?:\^([\w.]*)|(?:=(\w+))?(?::(.+))?)$/;

/**
 * Converts a Go field name to its JSON name: `HTTPGet` to `httpGet`, `HostIP` to `hostIP`, `TTY` to
 * `tty`.
 */
export function jsonName(name: string): string {
  return name.replace(/^(?:[A-Z]+(?=[A-Z][a-z]|$)|[A-Z])/, (start) => start.toLowerCase());
}

function goName(type: string): string {
  if (type === 'map') return 'map[string]string';
  return type.replace(/(?<![\w.])[A-Z]\w*/g, (name) => `core.${name}`);
}

const nil = '<nil>';
const plainDump: Dump = (value = '') => String(value);

const dumpAmount: Dump = (value, written) => dumpQuantity(heldToMilli(heldOf(value, written)));

const plainTypes: Readonly<Record<string, Dump>> = {
  string: plainDump,
  bool: (value = false) => String(value),
  int32: (value = 0) => String(value),
  int64: (value = 0) => String(value),
  map: mapDump(() => plainDump),
  ResourceList: mapDump(() => dumpAmount),
  'resource.Quantity': (value, written) => dumpQuantity(heldOf(value, written)),
  'v1.Time': (_, written) => dumpTime(textOf(written) ?? ''),
  'v1.FieldsV1': (_, written) =>
    `{Raw:([]uint8)[${written === undefined ? '' : Buffer.from(rawJson(written)).join(' ')}]}`,
  'intstr.IntOrString': (value = 0) =>
    typeof value === 'string'
      ? `{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string)${value}}`
      : `{Type:(intstr.Type)0 IntVal:(int32)${value} StrVal:(string)}`,
};

/**
 * Returns the quantity if it was already computed, otherwise parses it from the text in the
 * manifest: different texts of the same amount have different dumps.
 */
function heldOf(value: unknown, written: YamlTree | undefined): HeldQuantity {
  if (typeof value === 'object') return value as HeldQuantity;
  return holdWritten(written);
}

/**
 * Returns the dumper of a pointer's target or of the elements of a list or map; called only when
 * there is a value to dump.
 */
type DumpLater = () => Dump;

function pointerDump(dumpOf: DumpLater): Dump {
  return (value, written) => (value === undefined ? nil : dumpOf()(value, written));
}

function writtenDump(dump: Dump): Dump {
  return (value, written) => dump(isWritten(written) ? value : undefined, written);
}

/**
 * Dumps a list. An empty list that the manifest does not contain is dumped as nil, because decoding
 * creates an empty list for a missing required field.
 */
function listDump(dumpOf: DumpLater): Dump {
  return (value, written) => {
    const items = (value ?? []) as readonly unknown[];
    if (items.length === 0 && !isWritten(written)) return nil;
    const parts = written?.kind === 'list' ? written.items : [];
    const dump = dumpOf();
    return `[${items.map((item, index) => dump(item, parts[index])).join(' ')}]`;
  };
}

function mapDump(dumpOf: DumpLater): Dump {
  return (value, written) => {
    if (value === undefined) return nil;
    const entries = Object.entries(value as Fields).sort(byBytes);
    const dump = dumpOf();
    return `map[${entries.map(([key, item]) => `${key}:${dump(item, entryOf(written, key))}`).join(' ')}]`;
  };
}

function byBytes([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Number of seconds from year 1 to 1970. */
const unixEpoch = 62_135_596_800;
const minTime = -(2n ** 63n);
const maxTime = 2n ** 63n - 1n;

/** Go's dump of the time zone UTC; a Go kubelet dumps times with the time zone of its machine. */
const zone = '{name:(string)UTC offset:(int)0 isDST:(bool)false}';
const utc =
  `{name:(string)Local zone:([]time.zone)[${zone}] ` +
  `tx:([]time.zoneTrans)[{when:(int64)${minTime} index:(uint8)0 isstd:(bool)false isutc:(bool)false}] ` +
  `extend:(string)UTC0 cacheStart:(int64)${minTime} cacheEnd:(int64)${maxTime} cacheZone:(*time.zone)${zone}}`;

/** Dumps a time like the Go kubelet; the text must be RFC 3339, or empty for the zero time. */
function dumpTime(text: string): string {
  if (text === '') return '{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}';
  const [, fraction = ''] = /\.(\d+)/.exec(text) ?? [];
  const nanos = Number(fraction.slice(0, 9).padEnd(9, '0'));
  const seconds = Math.floor(Date.parse(text) / 1000) + unixEpoch;
  return `{Time:(time.Time){wall:(uint64)${nanos} ext:(int64)${seconds} loc:(*time.Location)${utc}}}`;
}

/** Formats JSON with sorted keys and no spaces, as raw extensions are stored. */
function rawJson(tree: YamlTree): string {
  if (tree.kind === 'scalar')
    return typeof tree.value === 'string' ? JSON.stringify(tree.value) : String(tree.value);
  if (tree.kind === 'list') return `[${tree.items.map(rawJson).join(',')}]`;
  const entries = [...new Map(tree.entries.map((entry) => [entry.key, entry.value]))].sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  return `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${rawJson(value)}`).join(',')}}`;
}
