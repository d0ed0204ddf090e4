import type { Random } from '../../../src/lib/index.ts';
import { everyContainer, type PodSketch } from '../sketch.ts';
import type { World } from '../world.ts';

export interface Peace {
  readonly world: Pick<World, 'volumes' | 'cluster' | 'runtime'>;
  readonly random: Random;
  readonly pass: (ms: number) => Promise<void>;
  readonly known: (uid: string) => PodSketch | undefined;
  /**
   * Advances time until the given function returns no differences, and reports a violation when the
   * time limit expires.
   */
  readonly until: (limitMs: number, rule: string, open: () => Promise<readonly string[]>) => Promise<void>;
}

const updates = 5;
const mostBetweenMs = 3_000;
/**
 * Longer than a sync that stops a container with its grace, and shorter than the interval between
 * two periodic syncs.
 */
const soonMs = 40_000;

/** Updates API objects on an idle node: the volumes of running pods must be updated soon. */
export async function updateInPeace({ world, random, pass, known, until }: Peace): Promise<void> {
  const { volumes, cluster } = world;
  if (volumes === undefined || cluster === undefined) return;
  for (let update = 0; update < updates; update++) {
    volumes.take({ do: 'update' }, cluster.api);
    await pass(random.next() * mostBetweenMs);
  }
  await shown({ world, known, until });
  // Creates or deletes the optional ConfigMap without other changes.
  for (let times = 0; times < 2; times++) {
    volumes.take({ do: 'come-or-go' }, cluster.api);
    await shown({ world, known, until });
  }
}

async function shown({ world, known, until }: Pick<Peace, 'world' | 'known' | 'until'>): Promise<void> {
  const { volumes, cluster, runtime } = world;
  if (volumes === undefined || cluster === undefined) return;
  await until(soonMs, 'an update comes soon to the pods that run', async () => {
    const uids = new Set(runtime.runningContainers().map(({ podUid }) => podUid));
    const free = [...uids].filter((uid) => cluster.hadVolumes(uid) && !hangs(known(uid)));
    return free.flatMap((uid) => volumes.outdated(uid));
  });
}

/** Whether a container has a postStart hook that never returns; its pod is then not synced. */
function hangs(sketch: PodSketch | undefined): boolean {
  const containers = sketch === undefined ? [] : everyContainer(sketch);
  return containers.some(({ postStart }) => postStart?.kind === 'hangs');
}
