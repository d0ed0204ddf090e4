import { isJsonObject, type JsonObject, mostValues } from '../../../api/index.ts';
import {
  decodeJson,
  decodeTree,
  type KindFinding,
  type KindTable,
  tableNameOf,
} from '../../../kinds/index.ts';
import { KubelingError, readYaml, Semaphore, type YamlTree, yamlToJs } from '../../../lib/index.ts';
import { badRequest, invalidAs } from '../../api/status-errors.ts';
import { tooManyValues, unsupportedMediaType } from '../http-errors.ts';
import { readMediaType } from '../media-types.ts';
import {
  apiVersion,
  breachesOf,
  type ExpectedKind,
  type FieldBreach,
  type FieldValidation,
  isSameKind,
  parseApiVersion,
  strictText,
} from './expected-kind.ts';
import { explained, readJsonText } from './json-body.ts';
import { ProtobufReader, readEnvelope } from './protobuf-object.ts';
import { turnAfter } from './read-body.ts';
import { SilentFields } from './zero-values.ts';

/** What was sent, before it is known to be what it should be. */
interface SentObject {
  readonly value: unknown;
  /** Where the value came from, if that says more than the value does. */
  readonly tree?: YamlTree | undefined;
  readonly duplicates: readonly string[];
}

export interface HowToDecode {
  readonly expected: ExpectedKind;
  readonly validation: FieldValidation;
  readonly warn: (text: string) => void;
}

export interface BodyToDecode extends HowToDecode {
  readonly bytes: Buffer;
  readonly contentType: string | undefined;
}

export interface PatchToDecode extends HowToDecode {
  readonly body: unknown;
  readonly duplicates: readonly string[];
}

const protobufType = 'application/vnd.kubernetes.protobuf';
export const bodyTypes: readonly string[] = ['application/json', 'application/yaml', protobufType];

/** Makes objects of the bodies of requests. */
export class BodyDecoder {
  readonly #table: KindTable;
  readonly #protobuf: ProtobufReader;
  readonly #silent: SilentFields;
  /** Parsing takes turns with other work and a thousand times the memory of its text: one YAML body at a time. */
  readonly #yaml = new Semaphore(1);
  #bodies = 0;

  constructor(table: KindTable) {
    this.#table = table;
    this.#protobuf = new ProtobufReader(table);
    this.#silent = new SilentFields(table);
  }

  /** Throws a refusal for anything that is not the object it should be. */
  async decode(body: BodyToDecode, signal: AbortSignal): Promise<JsonObject> {
    const sent = await this.#read(body, signal);
    await turnAfter(body.bytes);
    const object = this.#object(sent, body);
    await turnAfter(body.bytes);
    return object;
  }

  /** The same for what was not sent but written somewhere else. */
  decodeWritten(value: unknown, how: HowToDecode): JsonObject {
    return this.#object({ value, duplicates: [] }, how);
  }

  /** The same for what a patch made of an object. It was sound before, so what is wrong now came with the patch. */
  decodePatched(patched: JsonObject, patch: PatchToDecode): JsonObject {
    const { expected, validation } = patch;
    const name = tableNameOf(expected.group, expected.kind);
    if (!this.#table.has(name)) return patched;
    const { value, findings } = decodeJson<JsonObject>(this.#table, name, patched);
    const wrong = complaintsOf(findings);
    if (wrong !== undefined) throw invalidPatch(patch, wrong);
    const breaches = validation === 'Ignore' ? [] : breachesOf(findings, patch.duplicates);
    if (breaches.length > 0 && validation === 'Strict') throw invalidPatch(patch, strictText(breaches));
    for (const { text, advice } of breaches) patch.warn(text + advice);
    return this.#silent.without(name, value);
  }

  #object(sent: SentObject, how: HowToDecode): JsonObject {
    const { expected } = how;
    checkKind(sent.value, expected);
    const name = tableNameOf(expected.group, expected.kind);
    const headed = { apiVersion: apiVersion(expected), kind: expected.kind };
    if (!this.#table.has(name)) return { ...(sent.value as JsonObject), ...headed };
    const { value, findings } =
      sent.tree === undefined
        ? decodeJson<JsonObject>(this.#table, name, sent.value)
        : decodeTree<JsonObject>(this.#table, name, sent.tree);
    judge(findings, sent.duplicates, how);
    return { ...this.#silent.without(name, value), ...headed };
  }

  async #read({ bytes, contentType, expected }: BodyToDecode, signal: AbortSignal): Promise<SentObject> {
    const type = contentType === undefined || contentType === '' ? bodyTypes[0] : typeOf(contentType);
    if (type === 'application/json') return readJson(bytes, expected);
    if (type === 'application/yaml') return await this.#readYaml(bytes, signal);
    if (type === protobufType) return { value: this.#readProtobuf(bytes, expected), duplicates: [] };
    throw unsupportedMediaType(bodyTypes);
  }

  async #readYaml(bytes: Buffer, signal: AbortSignal): Promise<SentObject> {
    using _place = await this.#yaml.acquire(`body ${this.#bodies++}`, signal);
    return await readYamlBody(bytes);
  }

  #readProtobuf(bytes: Buffer, expected: ExpectedKind): unknown {
    try {
      const { apiVersion: written, kind, raw } = readEnvelope(bytes);
      const { group } = parseApiVersion(written);
      const name = tableNameOf(group, kind);
      if (!this.#table.has(name)) throw unsupportedMediaType(bodyTypes.slice(0, 2));
      const object = this.#protobuf.read(name, raw);
      return { ...object, apiVersion: written, kind };
    } catch (error) {
      if (!(error instanceof KubelingError)) throw error;
      throw badRequest(unrecognized(expected) + error.message);
    }
  }
}

function typeOf(contentType: string): string | undefined {
  return readMediaType(contentType)?.essence;
}

function readJson(bytes: Buffer, expected: ExpectedKind): SentObject {
  const { value, duplicates } = explained(unrecognized(expected), () => readJsonText(bytes.toString()));
  return { value, duplicates: isJsonObject(value) ? duplicates : refuseShape(expected) };
}

function unrecognized({ kind }: ExpectedKind): string {
  return `the object provided is unrecognized (must be of type ${kind}): `;
}

function refuseShape(expected: ExpectedKind): never {
  throw badRequest(`${unrecognized(expected)}it must be an object`);
}

async function readYamlBody(bytes: Buffer): Promise<SentObject> {
  const { tree, second, problems } = await readYaml(bytes.toString());
  const [problem] = problems;
  if (problem !== undefined)
    throw badRequest(
      `the body is no YAML: line ${problem.line}, column ${problem.column}: ${problem.message}`,
    );
  if (tree === undefined || second !== undefined)
    throw badRequest('the body must hold one YAML document, no less and no more');
  if (valuesIn(tree) > mostValues) throw tooManyValues(mostValues);
  return { value: yamlToJs(tree), tree, duplicates: [] };
}

function valuesIn(tree: YamlTree): number {
  if (tree.kind === 'list') return tree.items.reduce((sum, item) => sum + valuesIn(item), 1);
  if (tree.kind === 'map') return tree.entries.reduce((sum, { value }) => sum + valuesIn(value), 1);
  return 1;
}

/** What an object says of itself must fit the path it was sent to; it may also say nothing. */
function checkKind(value: unknown, expected: ExpectedKind): void {
  if (!isJsonObject(value)) refuseShape(expected);
  const { kind: sent = '', apiVersion: version = '' } = value;
  if (typeof sent !== 'string' || typeof version !== 'string')
    throw badRequest('the object provided is unrecognized: apiVersion and kind must be strings');
  const kind = sent === '' ? expected.kind : sent;
  if (kind !== expected.kind) {
    const shown = version === '' ? expected.version : parseApiVersion(version).version;
    throw badRequest(
      `${kind} in version ${JSON.stringify(shown)} cannot be handled as a ${expected.kind}: it must be of kind ${expected.kind} in ${apiVersion(expected)}`,
    );
  }
  if (!isSameKind(expected, version))
    throw badRequest(
      `the API version in the data (${version}) does not match the expected API version (${apiVersion(expected)})`,
    );
}

/** Values that do not fit are never taken; fields without effect only where the client does not mind. */
function judge(findings: readonly KindFinding[], duplicates: readonly string[], how: HowToDecode): void {
  const { expected, validation } = how;
  const wrong = complaintsOf(findings);
  if (wrong !== undefined) throw cannotHandle(expected, wrong);
  if (validation === 'Ignore') return;
  const breaches: readonly FieldBreach[] = breachesOf(findings, duplicates);
  if (breaches.length === 0) return;
  if (validation === 'Strict') throw cannotHandle(expected, strictText(breaches));
  for (const { text, advice } of breaches) how.warn(text + advice);
}

/** Nobody reads more than these. */
const mostComplaints = 50;

function complaintsOf(findings: readonly KindFinding[]): string | undefined {
  const wrong = findings.filter(({ severity }) => severity === 'error').slice(0, mostComplaints);
  return wrong.length === 0 ? undefined : wrong.map(({ field, message }) => `${field} ${message}`).join(', ');
}

const longestShown = 500;

function invalidPatch({ expected: { kind, group }, body }: PatchToDecode, why: string): Error {
  const shown = JSON.stringify(JSON.stringify(body).slice(0, longestShown));
  const message = `Invalid value: ${shown}: ${why}`;
  return invalidAs({ kind, group, name: '' }, [{ reason: 'FieldValueInvalid', field: 'patch', message }]);
}

function cannotHandle({ kind, version }: ExpectedKind, why: string): Error {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`);
}
