/** Pods of this priority and above, up to the next group's, end together and have this long. */
export interface ShutdownGroup {
  readonly priority: number;
  readonly seconds: number;
}

/** The parts of the configuration that say how long pods have when the machine shuts down. */
export interface ShutdownConfig {
  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly {
    readonly priority: number;
    readonly shutdownGracePeriodSeconds: number;
  }[];
}

const systemCritical = 2_000_000_000;

/** From the lowest priority to the highest; none for a node that lets its pods go down with the machine. */
export function shutdownGroups(config: ShutdownConfig): readonly ShutdownGroup[] {
  const { shutdownGracePeriodMs: total, shutdownGracePeriodCriticalPodsMs: critical } = config;
  const byPriority = config.shutdownGracePeriodByPodPriority.map(
    ({ priority, shutdownGracePeriodSeconds }) => ({
      priority,
      seconds: shutdownGracePeriodSeconds,
    }),
  );
  if (byPriority.length > 0) return byPriority.toSorted((a, b) => a.priority - b.priority);
  if (total === 0) return [];
  return [
    { priority: 0, seconds: Math.floor((total - critical) / 1_000) },
    { priority: systemCritical, seconds: Math.floor(critical / 1_000) },
  ];
}

/** How long all of them together need. */
export function wholeSeconds(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, { seconds }) => sum + seconds, 0);
}

/** The highest group that is not above the pod; the lowest for one below all. */
export function byShutdownGroup<P extends { readonly spec: { readonly priority?: number | undefined } }>(
  groups: readonly ShutdownGroup[],
  pods: readonly P[],
): readonly (ShutdownGroup & { readonly pods: readonly P[] })[] {
  const indexOf = ({ spec: { priority = 0 } }: P) =>
    Math.max(
      0,
      groups.findLastIndex((group) => group.priority <= priority),
    );
  const members = Map.groupBy(pods, indexOf);
  return groups.map((group, index) => ({ ...group, pods: members.get(index) ?? [] }));
}
