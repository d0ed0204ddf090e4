import {
  type ApiClient,
  apiResources,
  type ObjectChange,
  type ObjectCheck,
  Reflector,
  type ReflectorUpdate,
} from '../api/index.ts';
import type { Pod as WrittenPod } from '../kinds/index.ts';
import { type Clock, type Logger, type Random, untilAborted } from '../lib/index.ts';
import { mayBePodUid, type Pod, type PodUid } from '../pods/index.ts';
import type { PodListChanges } from './merge.ts';

export interface ApiSourceOptions {
  readonly api: Pick<ApiClient, 'list' | 'watch' | 'onReturn'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly nodeName: string;
  /** Called with the complete list of pods after each list request to the API server. */
  readonly setPods: (pods: readonly Pod[]) => void;
  /** Called with each batch of changes after the complete list. */
  readonly changePods: (changes: PodListChanges) => void;
}

/**
 * Watches the pods bound to this node in the API server. While the API server is unavailable the
 * last known pods are kept.
 */
export class ApiSource {
  readonly #options: ApiSourceOptions;
  readonly #reflector: Reflector<WrittenPod>;

  constructor(options: ApiSourceOptions) {
    this.#options = options;
    const { api: client, clock, random, logger, nodeName } = options;
    const query = { resource: apiResources.pods, fieldSelector: `spec.nodeName=${nodeName}` };
    this.#reflector = new Reflector<WrittenPod>({ client, clock, random, logger, query, check: podProblem });
  }

  /** A message for users why the list may be out of date; undefined when it is current. */
  get problem(): string | undefined {
    return this.#reflector.problem;
  }

  /** Returns the pod from the reflector's cache. */
  get(name: string, namespace: string): Pod | undefined {
    return this.#reflector.get(name, namespace) as Pod | undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    using _listening = this.#reflector.onUpdate((news) => this.#deliver(news as ReflectorUpdate<Pod>));
    this.#reflector.start();
    try {
      await untilAborted(signal);
    } finally {
      await this.#reflector.stop();
    }
  }

  #deliver(news: ReflectorUpdate<Pod>): void {
    const { setPods, changePods } = this.#options;
    if (news.kind === 'complete') setPods(news.objects);
    else changePods(listChanges(news.changes));
  }
}

/** Reduces the changes to the last one of each pod: removed, or present with its newest object. */
function listChanges(changes: readonly ObjectChange<Pod>[]): PodListChanges {
  const gone = new Set<PodUid>();
  const there = new Map<PodUid, Pod>();
  for (const { type, object } of changes) {
    const { uid } = object.metadata;
    there.delete(uid);
    if (type === 'deleted') gone.add(uid);
    else there.set(uid, object);
    if (type !== 'deleted') gone.delete(uid);
  }
  return { removed: [...gone], present: [...there.values()] };
}

/**
 * Checks only what would lead to wrong paths on this node, because the API server has validated the
 * pod.
 */
const podProblem: ObjectCheck<WrittenPod & { readonly metadata: { readonly uid: string } }> = (pod) => {
  if (!mayBePodUid(pod.metadata.uid)) return 'its UID cannot be the name of a directory';
  if (!pod.metadata.namespace) return 'it has no namespace';
  if (!Array.isArray(pod.spec?.containers)) return 'it has no containers';
  const stray = pathNamesOf(pod).find((name) => !mayNameDirectory(name));
  if (stray !== undefined) return `${JSON.stringify(stray)} cannot be the name of a directory`;
  return pod.status === undefined ? 'it has no status' : undefined;
};

/** All names in the pod from which paths on this node are built. */
function pathNamesOf({ metadata = {}, spec = { containers: [] } }: WrittenPod): readonly unknown[] {
  const { containers, initContainers = [], ephemeralContainers = [], volumes = [] } = spec;
  const named = [...containers, ...initContainers, ...ephemeralContainers, ...volumes];
  return [metadata.name, metadata.namespace, ...named.map(({ name }) => name)];
}

function mayNameDirectory(name: unknown): boolean {
  return typeof name === 'string' && /^[^./\0][^/\0]*$/.test(name);
}
