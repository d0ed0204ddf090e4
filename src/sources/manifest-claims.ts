import type { PodUid } from '../pods/index.ts';
import { fullNameOf, type Pod } from '../pods/index.ts';
import type { ManifestPod } from './manifest.ts';
import { problemAt, type SourceProblem } from './problems.ts';

/** A pod defined by a manifest, with the path of the manifest. */
export interface ManifestClaim extends ManifestPod {
  readonly path: string;
}

/** For each full pod name, the manifest pod that was in use when duplicates were last resolved. */
export type ClaimHolders = ReadonlyMap<string, ManifestClaim>;

export interface ResolvedClaims {
  readonly holders: ClaimHolders;
  readonly pods: readonly Pod[];
  readonly problems: readonly SourceProblem[];
}

/**
 * Decides which pods run when two manifests define pods with the same name or the same UID. The pod
 * in use stays in use, so that a forgotten copy changes nothing; of two new pods the first is used.
 * The other pod is reported with both locations. UIDs are unique over all sources; the pod workers
 * resolve names that several sources use.
 */
export function resolveClaims(
  claimants: readonly ManifestClaim[],
  before: ClaimHolders,
  source: 'file' | 'http',
  uids: StaticUids,
): ResolvedClaims {
  const inUse = (one: ManifestClaim) => uids.wasInUse(one.pod.metadata.uid);
  const byName = resolve(claimants, (one) => fullNameOf(one.pod), before, inUse);
  const byUid = resolve(byName.winners, (one) => one.pod.metadata.uid, before, inUse);
  const free = byUid.winners.filter(({ pod }) => uids.heldElsewhere(pod.metadata.uid, source) === undefined);
  uids.hold(source, free);
  const taken = byUid.winners.flatMap((loser) => {
    const winner = uids.heldElsewhere(loser.pod.metadata.uid, source);
    return winner === undefined ? [] : [{ loser, winner }];
  });
  const problems = [
    ...byName.losers.map((loser) => describe(loser, source, 'metadata.name')),
    ...[...byUid.losers, ...taken].map((loser) => describe(loser, source, 'metadata.uid')),
  ];
  const holders = new Map(free.map((one) => [fullNameOf(one.pod) as string, one]));
  return { holders, pods: free.map((one) => one.pod), problems };
}

interface Loser {
  readonly loser: ManifestClaim;
  /** Location of the manifest whose pod is used. */
  readonly winner: string;
}

function resolve(
  claimants: readonly ManifestClaim[],
  keyOf: (one: ManifestClaim) => string,
  before: ClaimHolders,
  inUse: (one: ManifestClaim) => boolean,
) {
  const groups = Map.groupBy(claimants, keyOf);
  const winners: ManifestClaim[] = [];
  const losers: Loser[] = [];
  for (const group of groups.values()) {
    const winner =
      group.find((one) => isSame(one, before)) ??
      group.find((one) => isSuccessor(one, before)) ??
      group.find(inUse) ??
      group[0];
    if (winner === undefined) continue;
    winners.push(winner);
    const where = `${winner.path}:${winner.at.line}`;
    losers.push(...group.filter((one) => one !== winner).map((loser) => ({ loser, winner: where })));
  }
  return { winners, losers };
}

function isSame(one: ManifestClaim, before: ClaimHolders): boolean {
  const holder = before.get(fullNameOf(one.pod));
  return holder !== undefined && holder.path === one.path && holder.pod.metadata.uid === one.pod.metadata.uid;
}

/**
 * Whether the previous pod of this name came from the same manifest file, which has been edited
 * since: an edited manifest defines another pod.
 */
function isSuccessor(one: ManifestClaim, before: ClaimHolders): boolean {
  return before.get(fullNameOf(one.pod))?.path === one.path;
}

function describe(
  { loser, winner }: Loser,
  source: 'file' | 'http',
  field: 'metadata.name' | 'metadata.uid',
): SourceProblem {
  const { name, namespace, uid } = loser.pod.metadata;
  const what = field === 'metadata.name' ? `the pod ${namespace}/${name}` : `a pod of the UID ${uid}`;
  return problemAt(
    { source, path: loser.path },
    {
      at: loser.at,
      field,
      pods: [fullNameOf(loser.pod)],
      message: `must be unique: ${what} is already defined at ${winner}, which stays in use`,
    },
  );
}

type StaticSource = 'file' | 'http';

interface Holder {
  readonly source: StaticSource;
  /** The file or URL of the manifest, with the line. */
  readonly where: string;
}

/**
 * Records which manifest uses which UID, over all manifest sources of one kubelet. The first
 * manifest keeps the UID until it is removed.
 */
export class StaticUids {
  readonly #holders = new Map<PodUid, Holder>();
  /**
   * Whether a previous kubelet process admitted the pod, which decides which of two manifests stays
   * in use after a restart.
   */
  readonly wasInUse: (uid: PodUid) => boolean;

  constructor(wasInUse: (uid: PodUid) => boolean = () => false) {
    this.wasInUse = wasInUse;
  }

  /** Location of the manifest in another source that uses the UID; undefined when there is none. */
  heldElsewhere(uid: PodUid, source: StaticSource): string | undefined {
    const holder = this.#holders.get(uid);
    return holder === undefined || holder.source === source ? undefined : holder.where;
  }

  /** Replaces the recorded UIDs of the source. */
  hold(source: StaticSource, claimants: readonly ManifestClaim[]): void {
    for (const [uid, holder] of this.#holders) if (holder.source === source) this.#holders.delete(uid);
    for (const { pod, path, at } of claimants)
      this.#holders.set(pod.metadata.uid, { source, where: `${path}:${at.line}` });
  }
}
