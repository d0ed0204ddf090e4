import type { ConfigMap, Container, PodSpec, Secret, Volume } from '../../src/kinds/index.ts';
import { type Clock, parseQuantity, seededRandom } from '../../src/lib/index.ts';
import type { TokenSpec } from '../../src/objects/index.ts';
import { type Pod, type PodUid, podUid } from '../../src/pods/index.ts';
import { podField, resourceField } from '../../src/runtime/index.ts';
import { PayloadVolumes, type PayloadVolumesDeps, type VolumeFiles } from '../../src/volumes/index.ts';
import { VirtualClock } from './virtual-clock.ts';

export const worldUid = podUid('0b1c');

/** Builds a pod that mounts all given volumes, each at a path with its name. */
export function podWith(
  volumes: readonly Volume[],
  spec: Partial<PodSpec> = {},
  labels: Readonly<Record<string, string>> = {},
): Pod {
  const mounts = volumes.map(({ name }) => ({ name, mountPath: `/mnt/${name}` }));
  const container: Container = { name: 'main', image: 'i', volumeMounts: mounts };
  return {
    metadata: { name: 'pod', namespace: 'ns', uid: worldUid, labels },
    spec: { containers: [container], serviceAccountName: 'robot', volumes, ...spec },
    status: {},
  };
}

/** Builds a pod with volumes of several kinds, for `setAll`. */
export function killedPod(): Pod {
  const volumes: readonly Volume[] = [
    { name: 'cm', configMap: { name: 'cm' } },
    { name: 's', secret: { secretName: 's' } },
    { name: 'p', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
  ];
  return podWith(volumes, { securityContext: { fsGroup: 77 } });
}

/** API objects and tokens for payload volumes, which a test changes. */
export class PayloadWorld {
  readonly secrets = new Map<string, Secret>();
  readonly configMaps = new Map<string, ConfigMap>();
  readonly asks: TokenSpec[] = [];
  readonly forgotten: PodUid[] = [];
  token: string | Error = 'token-1';
  /** The error that every read throws while it is set. */
  failure: Error | undefined;
  readonly signal = new AbortController().signal;
  readonly files: VolumeFiles;
  readonly #podsDir: string;
  readonly #clock: Clock;

  constructor(files: VolumeFiles, podsDir = '/pods', clock: Clock = new VirtualClock()) {
    this.files = files;
    this.#podsDir = podsDir;
    this.#clock = clock;
  }

  /** Creates payload volumes in the state of a newly started kubelet. */
  volumes(changes: Partial<PayloadVolumesDeps> = {}): PayloadVolumes {
    const allocatable = new Map([['memory', parseQuantity('64Mi')]]);
    return new PayloadVolumes({
      podsDir: this.#podsDir,
      api: { objects: this.#objects(), tokens: this.#tokens() },
      downward: {
        field: (pod, selector) => podField(pod, selector, { podIps: [], hostIps: [] }),
        resource: (pod, container, selector) => resourceField(pod, container, selector, allocatable),
      },
      files: this.files,
      clock: this.#clock,
      random: seededRandom(1),
      allocatable: () => allocatable,
      ...changes,
    });
  }

  setConfigMap(name: string, data: Readonly<Record<string, string>>): void {
    this.configMaps.set(name, { data });
  }

  setSecret(name: string, data: Readonly<Record<string, string>>): void {
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    this.secrets.set(name, { data: Object.fromEntries(encoded) });
  }

  /**
   * Sets this text in the config map, the secret and the token that the pod of `killedPod` mounts.
   * The config map and the secret get it under two keys: one that always exists, and one whose name
   * contains the text.
   */
  setAll(text: string): void {
    const data = { always: text, [`only-${text}`]: text };
    this.setConfigMap('cm', data);
    this.setSecret('s', data);
    this.token = text;
  }

  #objects() {
    const read = <T>(from: ReadonlyMap<string, T>) => {
      return async (_namespace: string, name: string): Promise<T | undefined> => {
        if (this.failure !== undefined) throw this.failure;
        return from.get(name);
      };
    };
    return { secret: read(this.secrets), configMap: read(this.configMaps) };
  }

  #tokens() {
    return {
      get: async (ask: TokenSpec) => {
        this.asks.push(ask);
        if (this.token instanceof Error) throw this.token;
        const { token } = this;
        return { token, expiresMs: 0, expirationSeconds: undefined, serviceAccountUid: undefined };
      },
      forgetPod: (uid: PodUid) => void this.forgotten.push(uid),
    };
  }
}
