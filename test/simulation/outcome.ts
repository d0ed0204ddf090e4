import {
  afterExit,
  type ContainerSketch,
  everyContainer,
  images,
  isSidecar,
  type PodSketch,
  sidecarsOf,
} from './sketch.ts';

/** The final state of a pod whose containers exit only as its generated description defines. */
export type Outcome = 'running' | 'succeeded' | 'failed' | 'never-settles';

export function outcomeOf(sketch: PodSketch): Outcome {
  if (sketch.deadlineSeconds !== undefined) return 'failed';
  if (everyContainer(sketch).some(isNeverThere)) return 'never-settles';
  if (sidecarsOf(sketch).some((one) => fateOf(sketch, one) !== 'stays')) return 'never-settles';
  for (const one of sketch.init.filter((each) => !isSidecar(each))) {
    const fate = fateOf(sketch, one);
    if (fate === 'failed') return 'failed';
    if (fate !== 'succeeded') return 'never-settles';
  }
  const fates = sketch.containers.map((one) => fateOf(sketch, one));
  if (fates.includes('unsteady')) return 'never-settles';
  if (fates.includes('stays')) return 'running';
  return fates.includes('failed') ? 'failed' : 'succeeded';
}

/** The containers that run permanently in a pod whose outcome is `running`. */
export function lastingOf(sketch: PodSketch): readonly ContainerSketch[] {
  return everyContainer(sketch).filter((each) => fateOf(sketch, each) === 'stays');
}

/**
 * Whether an exit that the pod's generated description does not define could change the outcome of
 * the pod.
 */
export function mayEndOtherwise(sketch: PodSketch): boolean {
  if (sketch.restartPolicy !== 'Always') return true;
  return [...sketch.init, ...sketch.containers].some(
    ({ restartPolicy = 'Always' }) => restartPolicy !== 'Always',
  );
}

function isNeverThere({ image, pullPolicy }: ContainerSketch): boolean {
  return image === images.missing || (pullPolicy === 'Never' && image !== images.present);
}

/** Whether a probe may still stop a container of the running pod. */
export function mayBeProbedToDeath(sketch: PodSketch): boolean {
  return everyContainer(sketch).some(({ probes = {} }) =>
    [probes.liveness, probes.startup].some((probe) => (probe?.untilAttempt ?? 0) > 0),
  );
}

type Fate = 'stays' | 'succeeded' | 'failed' | 'unsteady';

/**
 * The final state of one container that exits only as the generated description of its pod defines.
 */
function fateOf(sketch: PodSketch, container: ContainerSketch): Fate {
  const { postStart, failsBefore = 0, failsWith = 1, runMs, exitCode = 0 } = container;
  if (postStart?.kind === 'hangs' || (postStart?.kind === 'exec' && postStart.exitCode !== 0))
    return 'unsteady';
  const end = (code: number): Fate => (code === 0 ? 'succeeded' : 'failed');
  if (sketch.ephemeral?.includes(container)) return runMs === undefined ? 'stays' : end(exitCode);
  if (failsBefore > 0 && afterExit(sketch, container, failsWith) === 'stays-ended') return end(failsWith);
  if (runMs === undefined) return 'stays';
  return afterExit(sketch, container, exitCode) === 'stays-ended' ? end(exitCode) : 'unsteady';
}
