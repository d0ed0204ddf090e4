import type {
  ConfigMap,
  Container,
  EnvFromSource,
  EnvVar,
  EnvVarSource,
  FileKeySelector,
  Secret,
} from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod, ResourceList } from '../../pods/index.ts';
import { type DownwardAddresses, podField, resourceField } from './downward-api.ts';
import { ExpansionBudget, expand } from './expansion.ts';
import { type KnownServices, serviceVariables } from './service-variables.ts';

/**
 * Reads ConfigMaps and Secrets. Returns undefined for a missing object; throws when the object
 * cannot be read.
 */
export interface ObjectLookup {
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap | undefined>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
}

export interface EnvironmentInputs extends DownwardAddresses {
  /** Reads ConfigMaps and Secrets; undefined on a node without an API client. */
  readonly objects: ObjectLookup | undefined;
  readonly services: KnownServices;
  /** The allocatable resources of the node, for the downward API. */
  readonly allocatable: ResourceList;
  /**
   * Reads a file in a volume of the pod as text; the path must not leave the volume. Resolves with
   * undefined when the volume is missing.
   */
  readonly volumeFile?: (volume: string, path: string, signal: AbortSignal) => Promise<string | undefined>;
}

/** A variable with its value as bytes, because the value of a secret need not be text. */
export interface Variable {
  readonly name: string;
  readonly value: Buffer;
}

/**
 * Returns the container's variables in a stable order: envFrom sources by key, declared variables,
 * service variables. A later entry of the spec overrides an earlier one. Throws CONTAINER_CONFIG
 * with the message for the container's waiting state, also when the values exceed the size limit or
 * a ConfigMap or Secret cannot be read.
 */
export async function containerEnvironment(
  pod: Pod,
  container: Container,
  inputs: EnvironmentInputs,
  budget: ExpansionBudget,
  signal: AbortSignal,
): Promise<readonly Variable[]> {
  const services = serviceVariables(pod, inputs.services);
  const objects = new Objects(pod.metadata.namespace, inputs.objects, signal);
  const variables = new Map<string, Buffer>();
  const setFromObject = (name: string, value: Buffer) => {
    budget.take(value.length);
    variables.set(name, value);
  };
  for (const source of container.envFrom ?? []) {
    for (const [name, value] of await wholeObject(source, objects)) setFromObject(name, value);
  }
  for (const variable of container.env ?? []) {
    const value = await valueOfVariable(variable, {
      pod,
      container,
      inputs,
      objects,
      variables,
      services,
      budget,
      signal,
    });
    if (value !== undefined) variables.set(variable.name, value);
  }
  for (const [name, value] of services) {
    if (!variables.has(name)) setFromObject(name, Buffer.from(value));
  }
  return Array.from(variables, ([name, value]) => checkedVariable(name, value));
}

/** Rejects NUL bytes in values, because the runtime's error for them is hard to understand. */
function checkedVariable(name: string, value: Buffer): Variable {
  if (!name.includes('\0') && !value.includes(0)) return { name, value };
  throw failed(`environment variable ${JSON.stringify(name)} has a NUL byte, which no process can be given`);
}

/** Returns a function that looks up variables as text, for commands and arguments. */
export function textLookup(variables: readonly Variable[]): (name: string) => string | undefined {
  const texts = new Map(variables.map(({ name, value }) => [name, value.toString('utf8')]));
  return (name) => texts.get(name);
}

/**
 * The maximum length that variables can add to a probe's command; it is low because they are
 * expanded on each run of the probe.
 */
const maxProbeExpansion = 128 * 1024;

/**
 * Expands a probe's command with variables that have a literal value in the spec; variables from
 * other sources become an empty string. Throws CONTAINER_CONFIG when the result is too large.
 */
export function expandProbeCommand(command: readonly string[], { env = [] }: Container): readonly string[] {
  const literalBytes = command.reduce((sum, word) => sum + word.length, 0);
  const budget = new ExpansionBudget(literalBytes + maxProbeExpansion);
  const values = new Map(env.map(({ name, value = '' }) => [name, value]));
  return command.map((word) => expand(word, (name) => values.get(name), budget));
}

async function wholeObject(source: EnvFromSource, objects: Objects): Promise<[string, Buffer][]> {
  const ref = source.configMapRef ?? source.secretRef;
  if (ref === undefined) return [];
  const kind = source.configMapRef === undefined ? 'secret' : 'configMap';
  const data = await objects.read(kind, ref);
  const prefix = source.prefix ?? '';
  return [...(data ?? [])].map(([key, value]) => [`${prefix}${key}`, value]);
}

interface ValueContext {
  readonly pod: Pod;
  readonly container: Container;
  readonly inputs: EnvironmentInputs;
  readonly objects: Objects;
  readonly variables: ReadonlyMap<string, Buffer>;
  readonly services: ReadonlyMap<string, string>;
  readonly budget: ExpansionBudget;
  readonly signal: AbortSignal;
}

/**
 * Returns the value of the variable; undefined when its source is optional and missing: the
 * variable is then not set.
 */
async function valueOfVariable(variable: EnvVar, context: ValueContext): Promise<Buffer | undefined> {
  const { value = '', valueFrom } = variable;
  if (value !== '') return expandBytes(value, context);
  if (valueFrom === undefined) return Buffer.alloc(0);
  const found = await valueFromSource(valueFrom, context);
  context.budget.take(found?.length ?? 0);
  return found;
}

/** During expansion each byte is encoded as one character, so that binary values are preserved. */
function expandBytes(text: string, { variables, services, budget }: ValueContext): Buffer {
  const asBytes = (buffer: Buffer) => buffer.toString('latin1');
  const lookup = (bytes: string) => {
    const name = Buffer.from(bytes, 'latin1').toString('utf8');
    const value = variables.get(name);
    if (value !== undefined) return asBytes(value);
    const service = services.get(name);
    return service === undefined ? undefined : asBytes(Buffer.from(service));
  };
  return Buffer.from(expand(asBytes(Buffer.from(text)), lookup, budget), 'latin1');
}

async function valueFromSource(source: EnvVarSource, context: ValueContext): Promise<Buffer | undefined> {
  const { pod, container, inputs, objects } = context;
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  if (fieldRef !== undefined) return Buffer.from(podField(pod, fieldRef, inputs));
  if (resourceFieldRef !== undefined) {
    return Buffer.from(resourceField(pod, container, resourceFieldRef, inputs.allocatable));
  }
  if (configMapKeyRef !== undefined) return await objects.readKey('configMap', configMapKeyRef);
  if (secretKeyRef !== undefined) return await objects.readKey('secret', secretKeyRef);
  return fileKeyRef === undefined ? Buffer.alloc(0) : await valueFromFile(fileKeyRef, context);
}

async function valueFromFile(
  { volumeName, path, key, optional }: FileKeySelector,
  { inputs, signal }: ValueContext,
): Promise<Buffer | undefined> {
  const text = await inputs.volumeFile?.(volumeName, path, signal);
  if (text === undefined) throw failed(`cannot find the volume "${volumeName}" referenced by FileKeyRef`);
  const value = readEnvFile(text, key) ?? '';
  if (value !== '') return Buffer.from(value);
  if (optional === true) return undefined;
  throw failed(`environment variable key "${key}" not found in file "${path}"`);
}

function failed(message: string): KubelingError {
  return new KubelingError('CONTAINER_CONFIG', message);
}

type ObjectKind = 'configMap' | 'secret';
type ObjectData = ReadonlyMap<string, Buffer>;

interface ObjectRef {
  readonly name?: string | undefined;
  readonly optional?: boolean | undefined;
}

/**
 * The spelling of ConfigMap and Secret in three error messages: the node has no API client, the
 * object is missing, or its key is missing.
 */
const kindNames = {
  configMap: { wanted: 'configMap', missing: 'configmap', holder: 'ConfigMap' },
  secret: { wanted: 'secret', missing: 'secret', holder: 'Secret' },
} as const;

/**
 * The ConfigMaps and Secrets to which one container refers. Each is read once, so that all
 * variables are from one version.
 */
class Objects {
  readonly #namespace: string;
  readonly #lookup: ObjectLookup | undefined;
  readonly #signal: AbortSignal;
  readonly #read = new Map<string, ObjectData | undefined>();

  constructor(namespace: string, lookup: ObjectLookup | undefined, signal: AbortSignal) {
    this.#namespace = namespace;
    this.#lookup = lookup;
    this.#signal = signal;
  }

  /** Returns the object; undefined when it is optional and missing. */
  async read(kind: ObjectKind, { name = '', optional }: ObjectRef): Promise<ObjectData | undefined> {
    const id = `${kind}/${name}`;
    if (!this.#read.has(id)) this.#read.set(id, await this.#fetch(kind, name));
    const data = this.#read.get(id);
    if (data !== undefined || optional === true) return data;
    throw failed(`${kindNames[kind].missing} "${name}" not found`);
  }

  async readKey(kind: ObjectKind, ref: ObjectRef & { readonly key: string }): Promise<Buffer | undefined> {
    const data = await this.read(kind, ref);
    const value = data?.get(ref.key);
    if (value !== undefined || ref.optional === true) return value;
    const holder = `${kindNames[kind].holder} ${this.#namespace}/${ref.name ?? ''}`;
    throw failed(`couldn't find key ${ref.key} in ${holder}`);
  }

  async #fetch(kind: ObjectKind, name: string): Promise<ObjectData | undefined> {
    if (this.#lookup === undefined) {
      const what = `${kindNames[kind].wanted} ${this.#namespace}/${name}`;
      throw failed(`couldn't get ${what}, no kubeClient defined`);
    }
    const object = await this.#lookup[kind](this.#namespace, name, this.#signal);
    if (object === undefined) return undefined;
    const encoding = kind === 'secret' ? 'base64' : 'utf8';
    const entries = Object.entries(object.data ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
    return new Map(entries.map(([key, value]) => [key, Buffer.from(value, encoding)]));
  }
}

const blankOrComment = /[ \t]*(?:#[^\n]*)?(?:\n|$)/y;
const nameAndEquals = /[ \t]*([^=\s](?:[^=\n]*[^=\s])?)=/y;
const emptyValue = /[ \t][^\n]*(?:\n|$)/y;
const quotedValue = /'([^']*)'[ \t]*(?:#[^\n]*)?(?:\n|$)/y;

/**
 * Returns the value of one name in an env file, which has lines such as `NAME='value'`; undefined
 * when the name is missing. Values are quoted, taken literally and may span lines. Throws
 * CONTAINER_CONFIG at the first invalid line before the name.
 */
export function readEnvFile(text: string, name: string): string | undefined {
  const lines = text.replaceAll('\r\n', '\n');
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(lines) ?? undefined;
    if (found !== undefined) at = pattern.lastIndex;
    return found;
  };
  while (at < lines.length) {
    if (take(blankOrComment) !== undefined) continue;
    const found = take(nameAndEquals)?.[1];
    // A blank after the equals sign makes the value empty, as in a shell.
    const value = take(emptyValue) === undefined ? take(quotedValue)?.[1] : '';
    if (found === undefined || value === undefined) {
      throw new KubelingError('CONTAINER_CONFIG', "couldn't parse env file");
    }
    if (found === name) return value;
  }
  return undefined;
}
