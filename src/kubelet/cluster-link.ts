import type { Node } from '../kinds/index.ts';
import type { BoundClaims, PodObjects, TokenSource } from '../objects/index.ts';
import type { PodFullName, PodJournal } from '../pods/index.ts';
import type { KnownServices, PullSecrets, RuntimeClasses, ServiceAccounts } from '../runtime/index.ts';
import type { BackgroundLoops } from './background.ts';
import type { NodeEvent } from './node-journal.ts';

/** What a kubelet has from the cluster its node belongs to. */
export interface ClusterLink {
  /** Secrets and config maps of the pods that were registered. */
  readonly objects: Pick<PodObjects, 'register' | 'unregister' | 'secret' | 'configMap'>;
  /** The claims of pods, and the volumes they are bound to. */
  readonly claims: Pick<BoundClaims, 'get' | 'forgetPod' | 'size'>;
  readonly tokens: Pick<TokenSource, 'get' | 'forgetPod'>;
  readonly services: () => KnownServices;
  /** Which handler of the runtime runs the pods of a class. */
  readonly runtimeClasses: RuntimeClasses;
  /** With what pods pull their images. */
  readonly secrets: PullSecrets;
  readonly serviceAccounts: ServiceAccounts;
  /** The journal through which users of the API hear of events, too. */
  readonly journal: (journal: PodJournal) => PodJournal;
  readonly nodeEvent: (event: NodeEvent) => void;
  /** As the Node object has them; empty while nobody knows. */
  readonly nodeIps: () => readonly string[];
  /** The Node object as newly as it is known. */
  readonly node: () => Node | undefined;
  /** The Node object as the API has it now. */
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
  /** A static pod or a mirror of that name came, changed or went. */
  readonly staticChanged: (name: PodFullName) => void;
  /** What runs beside the kubelet, once it is attached. */
  readonly loops: () => BackgroundLoops;
}
