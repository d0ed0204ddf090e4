import type {
  ConfigMap,
  KeyToPath,
  ProjectedVolumeSource,
  Secret,
  ServiceAccountTokenProjection,
  Volume,
  VolumeProjection,
} from '../../kinds/index.ts';
import { describeError, YieldingCounter } from '../../lib/index.ts';
import type { PodObjects, TokenSource } from '../../objects/index.ts';
import type { Pod } from '../../pods/index.ts';
import { commonUser, groupAccessOf } from '../manager/volume-paths.ts';
import { type DownwardValues, downwardPayload } from './downward-payload.ts';
import { joinMessages, type Payload, type PayloadBudget, type PayloadFile, unusable } from './payload.ts';

export interface PayloadSourcesDeps {
  /** Reads objects and requests tokens; undefined on a node without an API server. */
  readonly api:
    | {
        readonly objects: Pick<PodObjects, 'secret' | 'configMap'>;
        readonly tokens: Pick<TokenSource, 'get'>;
      }
    | undefined;
  readonly downward: DownwardValues;
}

/** The default file mode and token lifetime of the API server. */
const readableByAll = 0o644;
const ownerOnly = 0o600;
const ownerAndGroup = 0o640;
const defaultTokenSeconds = 3600;
/** The number of sources of a projected volume that are read concurrently. */
const sourcesAtOnce = 64;

/** A ConfigMap or Secret, and the keys selected from it. */
interface ObjectSource {
  readonly name?: string | undefined;
  readonly items?: KeyMapping['items'] | undefined;
  readonly defaultMode?: number | undefined;
  readonly optional?: boolean | undefined;
  readonly budget: PayloadBudget;
  readonly values: DecodedValues;
}

/** Reads the content of payload volumes. Each call reads the sources again and writes nothing. */
export class PayloadSources {
  readonly #deps: PayloadSourcesDeps;

  constructor(deps: PayloadSourcesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the files of a payload volume; undefined for a volume of another type. Throws an error
   * with the message of the volume's event.
   */
  async payloadOf(
    pod: Pod,
    volume: Volume,
    budget: PayloadBudget,
    signal: AbortSignal,
  ): Promise<Payload | undefined> {
    const { configMap, secret, downwardAPI, projected } = volume;
    const values = new DecodedValues();
    if (configMap !== undefined) return await this.#configMap(pod, { ...configMap, budget, values }, signal);
    if (secret !== undefined)
      return await this.#secret(pod, { ...secret, name: secret.secretName, budget, values }, signal);
    if (downwardAPI !== undefined) {
      const { items = [], defaultMode = readableByAll } = downwardAPI;
      return downwardPayload(pod, items, { defaultMode, values: this.#deps.downward, budget });
    }
    if (projected === undefined) return undefined;
    return await this.#projected(pod, volume.name, { ...projected, budget }, signal);
  }

  async #configMap({ metadata }: Pod, source: ObjectSource, signal: AbortSignal): Promise<Payload> {
    const { name = '' } = source;
    const found = await this.#api().objects.configMap(metadata.namespace, name, signal);
    if (found === undefined) mustBeOptional(`configmap "${name}"`, source);
    return configMapPayload(found, mappingOf(source));
  }

  async #secret({ metadata }: Pod, source: ObjectSource, signal: AbortSignal): Promise<Payload> {
    const { name = '' } = source;
    const found = await this.#api().objects.secret(metadata.namespace, name, signal);
    if (found === undefined) mustBeOptional(`secret "${name}"`, source);
    return secretPayload(found, mappingOf(source));
  }

  /** A later source overrides an earlier one at the same path. */
  async #projected(
    pod: Pod,
    volume: string,
    { sources = [], defaultMode = readableByAll, budget }: ProjectedVolumeSource & { budget: PayloadBudget },
    signal: AbortSignal,
  ): Promise<Payload> {
    if (this.#deps.api === undefined) {
      throw unusable(`cannot setup projected volume ${volume} because kube client is not configured`);
    }
    const how = { defaultMode, budget, values: new DecodedValues() };
    const turns = new YieldingCounter(sourcesAtOnce);
    const files = new Map<string, PayloadFile>();
    const problems = new Set<string>();
    for (let from = 0; from < sources.length; from += sourcesAtOnce) {
      const batch = sources.slice(from, from + sourcesAtOnce);
      const results = await Promise.allSettled(
        batch.map((source) => this.#projection(pod, source, how, signal)),
      );
      signal.throwIfAborted();
      for (const result of results) {
        if (result.status === 'rejected') problems.add(describeError(result.reason));
        else for (const [path, file] of result.value) files.set(path, file);
      }
      if (turns.count(batch.length)) await turns.yield();
    }
    if (problems.size > 0) throw unusable(joinMessages([...problems]));
    return files;
  }

  async #projection(
    pod: Pod,
    source: VolumeProjection,
    how: Pick<ObjectSource, 'budget' | 'values'> & { readonly defaultMode: number },
    signal: AbortSignal,
  ): Promise<Payload> {
    const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } =
      source;
    if (secret !== undefined) return await this.#secret(pod, { ...secret, ...how }, signal);
    if (configMap !== undefined) return await this.#configMap(pod, { ...configMap, ...how }, signal);
    if (downwardAPI !== undefined) {
      const { defaultMode, budget } = how;
      const values = this.#deps.downward;
      return downwardPayload(pod, downwardAPI.items ?? [], { defaultMode, budget, values });
    }
    if (serviceAccountToken !== undefined) return await this.#token(pod, serviceAccountToken, how, signal);
    if (clusterTrustBundle !== undefined || podCertificate !== undefined) {
      const kind = clusterTrustBundle === undefined ? 'podCertificate' : 'clusterTrustBundle';
      throw unusable(`projections of the kind ${kind} are not supported by this node yet`);
    }
    return new Map();
  }

  /**
   * Builds the file of a service account token. Only the pod's user may read it: if all containers
   * run as one user, that user owns the file.
   */
  async #token(
    pod: Pod,
    { audience, expirationSeconds = defaultTokenSeconds, path }: ServiceAccountTokenProjection,
    { defaultMode, budget }: Pick<KeyMapping, 'defaultMode' | 'budget'>,
    signal: AbortSignal,
  ): Promise<Payload> {
    const { namespace, name, uid } = pod.metadata;
    const request = {
      namespace,
      serviceAccount: pod.spec.serviceAccountName ?? '',
      audience,
      expirationSeconds,
      pod: { name, uid },
    };
    const { token } = await this.#api().tokens.get(request, signal);
    const owner = commonUser(pod);
    const file: PayloadFile = { data: Buffer.from(token), mode: tokenMode(pod, owner, defaultMode), owner };
    budget.addFile(file.data.length);
    return new Map([[path, file]]);
  }

  #api(): NonNullable<PayloadSourcesDeps['api']> {
    const { api } = this.#deps;
    if (api === undefined) throw unusable('not supported due to running kubelet in standalone mode');
    return api;
  }
}

/**
 * Returns the mode of a token file. With an fsGroup the group gets read access even if the pod's
 * annotation denies it for other payload files, because containers could not read the token
 * otherwise.
 */
function tokenMode(pod: Pod, owner: number | undefined, defaultMode: number): number {
  const hasGroup = pod.spec.securityContext?.fsGroup !== undefined;
  if (hasGroup && groupAccessOf(pod) === 'as-is') return ownerAndGroup;
  return hasGroup || owner !== undefined ? ownerOnly : defaultMode;
}

function mappingOf({ items = [], defaultMode = readableByAll, optional, ...more }: ObjectSource): KeyMapping {
  const { budget, values } = more;
  return { items, defaultMode, budget, values, presence: optional === true ? 'optional' : 'required' };
}

function mustBeOptional(called: string, { optional }: ObjectSource): void {
  if (optional !== true) throw unusable(`${called} not found`);
}

/** Which keys of an object become files, and at which paths. */
export interface KeyMapping {
  /** The selected keys; undefined for all keys under their own names. */
  readonly items: readonly KeyToPath[];
  readonly defaultMode: number;
  /** `optional` if missing keys and a missing object are accepted. */
  readonly presence: 'required' | 'optional';
  readonly budget: PayloadBudget;
  readonly values: DecodedValues;
}

type Encoded = Readonly<Record<string, string>>;

/**
 * Decodes the keys of the objects of one volume: each key once, even if many items and sources name
 * it.
 */
export class DecodedValues {
  readonly #byData = new Map<Encoded, Map<string, Buffer>>();

  get(data: Encoded, key: string, encoding: 'utf8' | 'base64'): Buffer | undefined {
    if (!Object.hasOwn(data, key)) return undefined;
    const decoded = this.#byData.get(data) ?? new Map<string, Buffer>();
    this.#byData.set(data, decoded);
    const value = decoded.get(key) ?? Buffer.from(data[key] ?? '', encoding);
    decoded.set(key, value);
    return value;
  }
}

/** Builds the files of a ConfigMap. Throws VOLUME_UNUSABLE for a missing key. */
export function configMapPayload(configMap: ConfigMap | undefined, mapping: KeyMapping): Payload {
  const { data = {}, binaryData = {} } = configMap ?? {};
  const { items, values } = mapping;
  const text = (key: string) => values.get(data, key, 'utf8');
  const bytes = (key: string) => values.get(binaryData, key, 'base64');
  // An object that bypassed validation may have a key in both `data` and `binaryData`: items then
  // get the text, and a volume of all keys gets the bytes.
  const read = (key: string) => (items.length > 0 ? (text(key) ?? bytes(key)) : (bytes(key) ?? text(key)));
  const keys = () => new Set([...Object.keys(data), ...Object.keys(binaryData)]);
  return keysAsFiles({ keys, read }, mapping, 'configmap references non-existent config key');
}

/** Builds the files of a Secret. Throws VOLUME_UNUSABLE for a missing key. */
export function secretPayload(secret: Secret | undefined, mapping: KeyMapping): Payload {
  const { data = {} } = secret ?? {};
  const keys = () => Object.keys(data);
  const read = (key: string) => mapping.values.get(data, key, 'base64');
  return keysAsFiles({ keys, read }, mapping, 'references non-existent secret key');
}

interface KeyedValues {
  readonly keys: () => Iterable<string>;
  readonly read: (key: string) => Buffer | undefined;
}

function keysAsFiles({ keys, read }: KeyedValues, mapping: KeyMapping, missing: string): Payload {
  const { items, defaultMode, presence, budget } = mapping;
  const files = new Map<string, PayloadFile>();
  const chosen = items.length > 0 ? items : Iterator.from(keys()).map((key) => ({ key, path: key }));
  for (const { key, path, mode = defaultMode } of chosen as Iterable<KeyToPath>) {
    const data = read(key);
    if (data === undefined) {
      if (presence === 'required') throw unusable(`${missing}: ${key}`);
      continue;
    }
    budget.addFile(data.length);
    files.set(path, { data, mode });
  }
  return files;
}
