import type {
  ConfigMap,
  KeyToPath,
  ProjectedVolumeSource,
  Secret,
  ServiceAccountTokenProjection,
  Volume,
  VolumeProjection,
} from '../../kinds/index.ts';
import { describeError } from '../../lib/index.ts';
import type { PodObjects, TokenSource } from '../../objects/index.ts';
import type { Pod } from '../../pods/index.ts';
import { commonUser, groupAccessOf } from '../manager/volume-paths.ts';
import { type DownwardValues, downwardPayload } from './downward-payload.ts';
import { oneMessage, type Payload, type PayloadBudget, type PayloadFile, unusable } from './payload.ts';

export interface PayloadSourcesDeps {
  /** Undefined on a node without an API server. */
  readonly api:
    | {
        readonly objects: Pick<PodObjects, 'secret' | 'configMap'>;
        readonly tokens: Pick<TokenSource, 'get'>;
      }
    | undefined;
  readonly downward: DownwardValues;
}

/** What the API server fills in when the spec says nothing. */
const readableByAll = 0o644;
const ownerOnly = 0o600;
const ownerAndGroup = 0o640;
const defaultTokenSeconds = 3600;

/** An object, and which of its keys are wanted. */
interface ObjectSource {
  readonly name?: string | undefined;
  readonly items?: KeyMapping['items'] | undefined;
  readonly defaultMode?: number | undefined;
  readonly optional?: boolean | undefined;
  readonly budget: PayloadBudget;
}

/** Reads what the volumes of pods are made from. What a volume gets is read anew each time, and written by nobody here. */
export class PayloadSources {
  readonly #deps: PayloadSourcesDeps;

  constructor(deps: PayloadSourcesDeps) {
    this.#deps = deps;
  }

  /** Undefined for a volume of another kind; throws with the message for the volume's event. */
  async payloadOf(
    pod: Pod,
    volume: Volume,
    podBudget: PayloadBudget,
    signal: AbortSignal,
  ): Promise<Payload | undefined> {
    const { configMap, secret, downwardAPI, projected } = volume;
    const budget = podBudget.ofVolume();
    if (configMap !== undefined) return await this.#configMap(pod, { ...configMap, budget }, signal);
    if (secret !== undefined)
      return await this.#secret(pod, { ...secret, name: secret.secretName, budget }, signal);
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

  /** A later source has its way where it gives the same path as an earlier one. */
  async #projected(
    pod: Pod,
    volume: string,
    { sources = [], defaultMode = readableByAll, budget }: ProjectedVolumeSource & { budget: PayloadBudget },
    signal: AbortSignal,
  ): Promise<Payload> {
    if (this.#deps.api === undefined) {
      throw unusable(`cannot setup projected volume ${volume} because kube client is not configured`);
    }
    const results = await Promise.allSettled(
      sources.map((source) => this.#projection(pod, source, { defaultMode, budget }, signal)),
    );
    signal.throwIfAborted();
    const problems = results.filter((result) => result.status === 'rejected');
    if (problems.length > 0) throw unusable(oneMessage(problems.map(({ reason }) => describeError(reason))));
    const payloads = results.filter((result) => result.status === 'fulfilled');
    return new Map(payloads.flatMap(({ value }) => [...value]));
  }

  async #projection(
    pod: Pod,
    source: VolumeProjection,
    how: Pick<KeyMapping, 'defaultMode' | 'budget'>,
    signal: AbortSignal,
  ): Promise<Payload> {
    const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } =
      source;
    if (secret !== undefined) return await this.#secret(pod, { ...secret, ...how }, signal);
    if (configMap !== undefined) return await this.#configMap(pod, { ...configMap, ...how }, signal);
    if (downwardAPI !== undefined) {
      return downwardPayload(pod, downwardAPI.items ?? [], { ...how, values: this.#deps.downward });
    }
    if (serviceAccountToken !== undefined) return await this.#token(pod, serviceAccountToken, how, signal);
    if (clusterTrustBundle !== undefined || podCertificate !== undefined) {
      const kind = clusterTrustBundle === undefined ? 'podCertificate' : 'clusterTrustBundle';
      throw unusable(`projections of the kind ${kind} are not supported by this node yet`);
    }
    return new Map();
  }

  /** Whoever steals a token is its bearer: where the pod says who it runs as, nobody else can read it. */
  async #token(
    pod: Pod,
    { audience, expirationSeconds = defaultTokenSeconds, path }: ServiceAccountTokenProjection,
    { defaultMode, budget }: Pick<KeyMapping, 'defaultMode' | 'budget'>,
    signal: AbortSignal,
  ): Promise<Payload> {
    const { namespace, name, uid } = pod.metadata;
    const ask = {
      namespace,
      serviceAccount: pod.spec.serviceAccountName ?? '',
      audience,
      expirationSeconds,
      pod: { name, uid },
    };
    const { token } = await this.#api().tokens.get(ask, signal);
    const owner = commonUser(pod);
    const file: PayloadFile = { data: Buffer.from(token), mode: tokenMode(pod, defaultMode), owner };
    budget.addFile(file.data.length);
    return new Map([[path, file]]);
  }

  #api(): NonNullable<PayloadSourcesDeps['api']> {
    const { api } = this.#deps;
    if (api === undefined) throw unusable('not supported due to running kubelet in standalone mode');
    return api;
  }
}

/** The group of the pod gets its own share of a token even where it gets none of other files: nothing else would let it. */
function tokenMode(pod: Pod, defaultMode: number): number {
  const hasGroup = pod.spec.securityContext?.fsGroup !== undefined;
  if (hasGroup && groupAccessOf(pod) === 'as-is') return ownerAndGroup;
  return hasGroup || commonUser(pod) !== undefined ? ownerOnly : defaultMode;
}

function mappingOf({ items = [], defaultMode = readableByAll, optional, budget }: ObjectSource): KeyMapping {
  return { items, defaultMode, budget, presence: optional === true ? 'optional' : 'required' };
}

function mustBeOptional(called: string, { optional }: ObjectSource): void {
  if (optional !== true) throw unusable(`${called} not found`);
}

/** How the keys of an object become files. */
export interface KeyMapping {
  /** All keys under their own names when there are none. */
  readonly items: readonly KeyToPath[];
  readonly defaultMode: number;
  /** Whether keys, and the object itself, may be missing. */
  readonly presence: 'required' | 'optional';
  readonly budget: PayloadBudget;
}

/** Throws VOLUME_UNUSABLE for a key that is missing. */
export function configMapPayload(configMap: ConfigMap | undefined, mapping: KeyMapping): Payload {
  const { data = {}, binaryData = {} } = configMap ?? {};
  // A key in both can be had from an object that nobody has checked: then items see the text, and the whole the bytes.
  const lists = [texts(data), bytes(binaryData)];
  const values = new Map((mapping.items.length === 0 ? lists : lists.reverse()).flat());
  return keysAsFiles(values, mapping, 'configmap references non-existent config key');
}

/** Throws VOLUME_UNUSABLE for a key that is missing. */
export function secretPayload(secret: Secret | undefined, mapping: KeyMapping): Payload {
  return keysAsFiles(new Map(bytes(secret?.data ?? {})), mapping, 'references non-existent secret key');
}

type Written = Readonly<Record<string, string>>;

function texts(data: Written): [string, Buffer][] {
  return Object.entries(data).map(([key, text]) => [key, Buffer.from(text)]);
}

function bytes(data: Written): [string, Buffer][] {
  return Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]);
}

function keysAsFiles(values: ReadonlyMap<string, Buffer>, mapping: KeyMapping, missing: string): Payload {
  const { items, defaultMode, presence, budget } = mapping;
  const files = new Map<string, PayloadFile>();
  const add = (path: string, data: Buffer, mode: number) => {
    budget.addFile(data.length);
    files.set(path, { data, mode });
  };
  if (items.length === 0) for (const [key, data] of values) add(key, data, defaultMode);
  for (const { key, path, mode = defaultMode } of items) {
    const data = values.get(key);
    if (data !== undefined) add(path, data, mode);
    else if (presence === 'required') throw unusable(`${missing}: ${key}`);
  }
  return files;
}
