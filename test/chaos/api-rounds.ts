import { ApiFlaps, type FlapsPlan } from './api-flaps.ts';
import { ApiOutage, type OutagePlan } from './api-outage.ts';
import { ApiSilence, type SilencePlan } from './api-silence.ts';
import { ApiSlowness, type SlownessPlan } from './api-slowness.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { NodeRestarts, type RestartsPlan } from './node-restarts.ts';

/** The faults of the API server and restarts of the node in one test run. */
export interface ApiRoundsPlan {
  readonly outage: OutagePlan;
  readonly flaps: FlapsPlan;
  readonly slowness: SlownessPlan;
  readonly silence: SilencePlan;
  readonly restarts: RestartsPlan;
}

export type ApiRound = keyof ApiRoundsPlan;

export const apiRounds: Readonly<
  Record<ApiRound, (cluster: FaultyCluster, plan: ApiRoundsPlan) => Promise<void>>
> = {
  outage: (cluster, plan) => ApiOutage.run(cluster, plan.outage),
  flaps: (cluster, plan) => ApiFlaps.run(cluster, plan.flaps),
  slowness: (cluster, plan) => ApiSlowness.run(cluster, plan.slowness),
  silence: (cluster, plan) => ApiSilence.run(cluster, plan.silence),
  restarts: (cluster, plan) => NodeRestarts.run(cluster, plan.restarts),
};

export interface ApiRoundsOptions {
  readonly plan: ApiRoundsPlan;
  readonly rounds: readonly ApiRound[];
  readonly tell: (text: string) => void;
  /** A promise whose rejection stops the remaining rounds; the cluster is then removed. */
  readonly interrupted: Promise<never>;
}

/** Runs the rounds sequentially on one cluster, which is always removed at the end. */
export async function runApiRounds({ plan, rounds, tell, interrupted }: ApiRoundsOptions): Promise<void> {
  const cluster = await FaultyCluster.open(tell);
  const all = async () => {
    for (const round of rounds) {
      tell(`\n${round}`);
      await apiRounds[round](cluster, plan);
    }
  };
  let end: 'in-order' | 'after-failure' = 'after-failure';
  try {
    await Promise.race([all(), interrupted]);
    end = 'in-order';
  } finally {
    await cluster.close(end);
  }
}
