import type { ContainerStatus } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';

export function containerStatusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  return [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ].find((each) => each.name === name);
}

/** Why there is nothing to enter; undefined for one that runs. */
export function whyNotRunning(pod: Pod, name: string): string | undefined {
  const { state, lastState } = containerStatusOf(pod, name) ?? {};
  if (state?.running !== undefined) return undefined;
  if (state?.terminated !== undefined) return `the container ${name} has ended${endOf(state.terminated)}`;
  const waits = [state?.waiting?.reason, state?.waiting?.message].filter((words) => (words ?? '') !== '');
  const last = lastState?.terminated;
  return [
    `the container ${name} waits to be started${waits.length > 0 ? `: ${waits.join(': ')}` : ''}`,
    ...(last === undefined ? [] : [`it last ended${endOf(last)}`]),
  ].join('; ');
}

function endOf({
  exitCode,
  reason = '',
}: {
  readonly exitCode: number;
  readonly reason?: string | undefined;
}) {
  return ` with exit code ${exitCode}${reason === '' ? '' : ` (${reason})`}`;
}
