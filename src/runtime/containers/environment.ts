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

/** Reads objects that pods refer to. Answers undefined for what is not there; throws when it cannot be told. */
export interface ObjectLookup {
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap | undefined>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
}

export interface EnvironmentInputs extends DownwardAddresses {
  /** Undefined when there is no API. */
  readonly objects: ObjectLookup | undefined;
  readonly services: KnownServices;
  /** What the node has to give. */
  readonly allocatable: ResourceList;
  /** The text of a file in a volume of the pod, which must not leave it; undefined when the volume is not there. */
  readonly volumeFile?: (volume: string, path: string, signal: AbortSignal) => Promise<string | undefined>;
}

/** Values are bytes: a secret need not be text. */
export interface Variable {
  readonly name: string;
  readonly value: Buffer;
}

/**
 * The variables of a container in a stable order: from whole objects, by key, then as they are declared, then those of
 * services. What comes later in the spec replaces what came before. Throws CONTAINER_CONFIG, also where all values
 * exceed the budget, or what the lookup of an object threw, with the message for the container's waiting state.
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

/** The runtime would refuse it too, in words nobody could make sense of. */
function checkedVariable(name: string, value: Buffer): Variable {
  if (!name.includes('\0') && !value.includes(0)) return { name, value };
  throw failed(`environment variable ${JSON.stringify(name)} has a NUL byte, which no process can be given`);
}

/** For commands and arguments, which are text. */
export function textLookup(variables: readonly Variable[]): (name: string) => string | undefined {
  const texts = new Map(variables.map(({ name, value }) => [name, value.toString('utf8')]));
  return (name) => texts.get(name);
}

/** References in the command of a probe add at most so much to it, as they are expanded at each run of the probe. */
const maxProbeExpansion = 128 * 1024;

/**
 * The command of a probe with variables that the spec gives a literal value; a variable from another source is empty.
 * Throws CONTAINER_CONFIG where the references expand to too much.
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

/** Undefined when it is optional and not there: then there is no such variable at all. */
async function valueOfVariable(variable: EnvVar, context: ValueContext): Promise<Buffer | undefined> {
  const { value = '', valueFrom } = variable;
  if (value !== '') return expandBytes(value, context);
  if (valueFrom === undefined) return Buffer.alloc(0);
  const found = await valueFromSource(valueFrom, context);
  context.budget.take(found?.length ?? 0);
  return found;
}

/** One character a byte while expanding, so that values that are no text come through whole. */
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

/** How the kinds are named in messages: when there is nothing to ask, when it is not there, when a key is not in it. */
const kindNames = {
  configMap: { wanted: 'configMap', missing: 'configmap', holder: 'ConfigMap' },
  secret: { wanted: 'secret', missing: 'secret', holder: 'Secret' },
} as const;

/** The objects one container refers to; each is read once, so that all its variables are of one version. */
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

  /** Undefined when it is optional and not there. */
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
 * The value of one name in a file of lines such as `NAME='value'`; undefined when it is not there. Quotes are needed,
 * what is between them is taken as it is and may span lines. Throws CONTAINER_CONFIG at the first line before it that
 * is none of this: half a file is worse than none.
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
    // A blank after the equals sign ends the value before it began, as in a shell.
    const value = take(emptyValue) === undefined ? take(quotedValue)?.[1] : '';
    if (found === undefined || value === undefined) {
      throw new KubelingError('CONTAINER_CONFIG', "couldn't parse env file");
    }
    if (found === name) return value;
  }
  return undefined;
}
