import { apiObjectsGoLast } from './api-removals.ts';
import { statusesGoOn } from './api-statuses.ts';
import { crashBackoffHolds } from './crash-backoff.ts';
import { devicesHaveOneOwner } from './devices.ts';
import { evictedStaysEvicted } from './evictions.ts';
import { graceOnlyShrinks } from './grace.ts';
import { ephemeralOnce, postStartRuns, preStopOnce } from './hooks.ts';
import { imagesStayForContainers } from './images.ts';
import { initOrder } from './init-order.ts';
import { Ledger } from './ledger.ts';
import { logsStaySmall } from './log-sizes.ts';
import { oneOfEachContainer, oneOfEachName } from './one-of-each.ts';
import { probeResultsStay } from './probe-results.ts';
import { restartsWriteNothing } from './quiet-restart.ts';
import { readyMeansRunning } from './readiness.ts';
import { removesOnce } from './removals.ts';
import { neverMoreThanTheNode } from './resizes.ts';
import type { Rule, Scene } from './scene.ts';
import { sidecarOrder } from './sidecar-order.ts';
import { startsOnlyWhatIsWanted } from './starts.ts';
import { stopsOnlyWhatIsUnwanted } from './stops.ts';
import { terminalPhaseStays } from './terminal-phase.ts';
import {
  disksOutlivePods,
  readersSeeWholes,
  startsWithItsVolumes,
  volumesOutliveContainers,
} from './volumes.ts';

export type { ClusterParts, Rule, Scene } from './scene.ts';

/**
 * All invariants. The ledger is the first one, because it records the history that the others use.
 */
export function allRules(scene: Scene): readonly Rule[] {
  const ledger = new Ledger(scene.nowMs);
  const rules = [
    oneOfEachContainer,
    oneOfEachName,
    startsOnlyWhatIsWanted,
    stopsOnlyWhatIsUnwanted,
    graceOnlyShrinks,
    terminalPhaseStays,
    initOrder,
    sidecarOrder,
    crashBackoffHolds,
    readyMeansRunning,
    probeResultsStay,
    preStopOnce,
    postStartRuns,
    ephemeralOnce,
    removesOnce,
    imagesStayForContainers,
    neverMoreThanTheNode,
  ];
  const { cluster, volumes, logs, devices } = scene;
  const clusterRules = [apiObjectsGoLast, statusesGoOn, restartsWriteNothing, evictedStaysEvicted];
  const volumeRules = [startsWithItsVolumes, volumesOutliveContainers, disksOutlivePods, readersSeeWholes];
  return [
    ledger,
    ...rules.map((rule) => rule({ ...scene, ledger })),
    ...(logs === undefined ? [] : [logsStaySmall(scene, logs)]),
    ...(cluster === undefined ? [] : clusterRules.map((rule) => rule({ ...scene, ledger, cluster }))),
    ...(devices === undefined ? [] : [devicesHaveOneOwner(scene)]),
    ...(volumes === undefined ? [] : volumeRules.map((rule) => rule({ ...scene, ledger, volumes }))),
  ];
}
