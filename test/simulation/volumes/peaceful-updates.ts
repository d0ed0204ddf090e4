import type { Random } from '../../../src/lib/index.ts';
import type { World } from '../world.ts';

export interface Peace {
  readonly world: Pick<World, 'volumes' | 'cluster' | 'runtime'>;
  readonly random: Random;
  readonly pass: (ms: number) => Promise<void>;
  /** Reports the rule if something is still open after that long. */
  readonly until: (limitMs: number, rule: string, open: () => Promise<readonly string[]>) => Promise<void>;
}

const updates = 5;
const mostBetweenMs = 3_000;
const soonMs = 10_000;

/** With nothing else going on nobody waits long for what its volumes are to say. */
export async function updateInPeace({ world, random, pass, until }: Peace): Promise<void> {
  const { volumes, cluster, runtime } = world;
  if (volumes === undefined || cluster === undefined) return;
  for (let update = 0; update < updates; update++) {
    volumes.take({ do: 'update' }, cluster.api);
    await pass(random.next() * mostBetweenMs);
  }
  await until(soonMs, 'an update comes soon to the pods that run', async () => {
    const uids = new Set(runtime.runningContainers().map(({ podUid }) => podUid));
    return [...uids].filter((uid) => cluster.hadVolumes(uid)).flatMap((uid) => volumes.outdated(uid));
  });
}
