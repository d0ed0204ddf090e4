import { isJsonObject, type JsonObject, mostValues } from '../../../api/index.ts';
import {
  decodeJson,
  decodeTree,
  type KindFinding,
  type KindTable,
  tableNameOf,
} from '../../../kinds/index.ts';
import { KubelingError, readYaml, Semaphore, type YamlTree, yamlToJs } from '../../../lib/index.ts';
import { badRequest, invalidFields } from '../../api/status-errors.ts';
import { tooManyValues, unsupportedMediaType } from '../http-errors.ts';
import { readMediaType } from '../media-types.ts';
import {
  apiVersion,
  type ExpectedKind,
  type FieldValidation,
  isSameKind,
  parseApiVersion,
  type StrictViolation,
  strictErrorMessage,
  strictViolations,
} from './expected-kind.ts';
import { readJsonText, withErrorPrefix } from './json-body.ts';
import { ProtobufReader, readEnvelope } from './protobuf-object.ts';
import { yieldAfterLargeBody } from './read-body.ts';
import { ZeroValueFilter } from './zero-values.ts';

/** A parsed request body that has not been checked against the expected kind. */
interface SentObject {
  readonly value: unknown;
  /** The body as YAML tree, which has positions and duplicate keys; undefined for other formats. */
  readonly tree?: YamlTree | undefined;
  readonly duplicates: readonly string[];
}

export interface DecodeOptions {
  readonly expected: ExpectedKind;
  readonly validation: FieldValidation;
  readonly warn: (text: string) => void;
}

export interface EncodedBody extends DecodeOptions {
  readonly bytes: Buffer;
  readonly contentType: string | undefined;
}

export interface DecodedPatch extends DecodeOptions {
  readonly body: unknown;
  readonly duplicates: readonly string[];
}

const protobufType = 'application/vnd.kubernetes.protobuf';
const bodyTypes: readonly string[] = ['application/json', 'application/yaml', protobufType];

/** Decodes request bodies into objects. */
export class BodyDecoder {
  readonly #table: KindTable;
  readonly #protobuf: ProtobufReader;
  readonly #zeroValues: ZeroValueFilter;
  /**
   * YAML parsing yields to the event loop and needs up to a thousand times the memory of its text,
   * so only one body is parsed at a time.
   */
  readonly #yaml = new Semaphore(1);
  #bodies = 0;

  constructor(table: KindTable) {
    this.#table = table;
    this.#protobuf = new ProtobufReader(table);
    this.#zeroValues = new ZeroValueFilter(table);
  }

  /** Decodes a request body; throws a StatusError if it is not an object of the expected kind. */
  async decode(body: EncodedBody, signal: AbortSignal): Promise<JsonObject> {
    const sent = await this.#read(body, signal);
    await yieldAfterLargeBody(body.bytes);
    const object = this.#decodeObject(sent, body);
    await yieldAfterLargeBody(body.bytes);
    return object;
  }

  /** Decodes an object from a manifest file. */
  decodeManifest(value: unknown, how: DecodeOptions): JsonObject {
    return this.#decodeObject({ value, duplicates: [] }, how);
  }

  /**
   * Decodes the result of a patch. The object was valid before the patch, so every error is due to
   * the patch.
   */
  decodePatched(patched: JsonObject, patch: DecodedPatch): JsonObject {
    const { expected, validation } = patch;
    const name = tableNameOf(expected.group, expected.kind);
    if (!this.#table.has(name)) return patched;
    const { value, findings } = decodeJson<JsonObject>(this.#table, name, patched);
    const errors = decodingErrors(findings);
    if (errors !== undefined) throw invalidPatch(patch, errors);
    const breaches = validation === 'Ignore' ? [] : strictViolations(findings, patch.duplicates);
    if (breaches.length > 0 && validation === 'Strict')
      throw invalidPatch(patch, strictErrorMessage(breaches));
    for (const { text, advice } of breaches) patch.warn(text + advice);
    return this.#zeroValues.filter(name, value);
  }

  #decodeObject(sent: SentObject, how: DecodeOptions): JsonObject {
    const { expected } = how;
    checkKind(sent.value, expected);
    const name = tableNameOf(expected.group, expected.kind);
    const headed = { apiVersion: apiVersion(expected), kind: expected.kind };
    if (!this.#table.has(name)) return { ...(sent.value as JsonObject), ...headed };
    const { value, findings } =
      sent.tree === undefined
        ? decodeJson<JsonObject>(this.#table, name, sent.value)
        : decodeTree<JsonObject>(this.#table, name, sent.tree);
    checkFindings(findings, sent.duplicates, how);
    return { ...this.#zeroValues.filter(name, value), ...headed };
  }

  async #read({ bytes, contentType, expected }: EncodedBody, signal: AbortSignal): Promise<SentObject> {
    const type = contentType === undefined || contentType === '' ? bodyTypes[0] : typeOf(contentType);
    if (type === 'application/json') return parseJson(bytes, expected);
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

function parseJson(bytes: Buffer, expected: ExpectedKind): SentObject {
  const { value, duplicates } = withErrorPrefix(unrecognized(expected), () => readJsonText(bytes.toString()));
  return { value, duplicates: isJsonObject(value) ? duplicates : rejectNonObject(expected) };
}

function unrecognized({ kind }: ExpectedKind): string {
  return `the object provided is unrecognized (must be of type ${kind}): `;
}

function rejectNonObject(expected: ExpectedKind): never {
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

/** Checks that kind and apiVersion of an object match the request path; both may be absent. */
function checkKind(value: unknown, expected: ExpectedKind): void {
  if (!isJsonObject(value)) rejectNonObject(expected);
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

/**
 * Reports the findings of the decoder: type errors are always rejected; unknown and duplicate
 * fields according to fieldValidation.
 */
function checkFindings(
  findings: readonly KindFinding[],
  duplicates: readonly string[],
  how: DecodeOptions,
): void {
  const { expected, validation } = how;
  const errors = decodingErrors(findings);
  if (errors !== undefined) throw undecodable(expected, errors);
  if (validation === 'Ignore') return;
  const breaches: readonly StrictViolation[] = strictViolations(findings, duplicates);
  if (breaches.length === 0) return;
  if (validation === 'Strict') throw undecodable(expected, strictErrorMessage(breaches));
  for (const { text, advice } of breaches) how.warn(text + advice);
}

/** The maximum number of decoding errors that the message for a rejected body lists. */
const maxErrors = 50;

function decodingErrors(findings: readonly KindFinding[]): string | undefined {
  const errors = findings.filter(({ severity }) => severity === 'error').slice(0, maxErrors);
  return errors.length === 0
    ? undefined
    : errors.map(({ field, message }) => `${field} ${message}`).join(', ');
}

const maxShownLength = 500;

function invalidPatch({ expected: { kind, group }, body }: DecodedPatch, why: string): Error {
  const shown = JSON.stringify(JSON.stringify(body).slice(0, maxShownLength));
  const message = `Invalid value: ${shown}: ${why}`;
  return invalidFields({ kind, group, name: '' }, [{ reason: 'FieldValueInvalid', field: 'patch', message }]);
}

function undecodable({ kind, version }: ExpectedKind, why: string): Error {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`);
}
