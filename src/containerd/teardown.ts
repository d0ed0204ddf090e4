import {
  type Clock,
  describeError,
  type ProcessTable,
  realCgroupHost,
  removeCgroup,
  removeEmptyCgroup,
} from '../lib/index.ts';
import { type Bundle, listBundles } from './bundles.ts';
import { cgroupDirectories, cgroupHierarchies } from './cgroups.ts';
import { removeRules } from './iptables.ts';
import type { Layout } from './layout.ts';
import { removeFiles, type SharedPaths, type TeardownOptions } from './leftover-files.ts';
import type { Run } from './machine.ts';
import { type Removal, readMounts, unmountBelow } from './mounts.ts';
import { removeBridge } from './network-links.ts';
import { killRemaining } from './remaining-processes.ts';

/** The items that the teardown removed, and those it could not remove. */
export interface TeardownReport {
  readonly containerd: 'stopped' | 'not-running';
  readonly processes: readonly string[];
  readonly mounts: readonly string[];
  readonly interfaces: readonly string[];
  readonly firewallRules: readonly string[];
  readonly cgroups: readonly string[];
  readonly files: readonly string[];
  readonly problems: readonly string[];
}

export interface TeardownDeps {
  readonly layout: Layout;
  readonly run: Run;
  readonly clock: Clock;
  readonly processes: ProcessTable;
  readonly procDir: string;
  readonly sysDir: string;
  readonly places: SharedPaths;
  readonly ip: string | undefined;
  readonly iptables: string | undefined;
}

/**
 * Removes what is left of this instance after its containerd stopped. A failed step is reported and
 * does not stop later ones.
 */
export async function removeLeftovers(
  options: TeardownOptions,
  deps: TeardownDeps,
  signal: AbortSignal,
): Promise<Omit<TeardownReport, 'containerd'>> {
  const { layout } = deps;
  const bundles = await listBundles(layout);
  const ours = [...bundles.map((bundle) => bundle.cgroup), layout.cgroup];
  const hierarchies = cgroupHierarchies(await readMounts(deps.procDir));
  const processes = await step(() => killRemaining(ours, { ...deps, hierarchies }, signal), signal);
  const mounts = await step(() => unmountOwn(deps, signal), signal);
  const interfaces = await step(() => removeBridge(layout.network, deps, signal), signal);
  const rules = await step(() => removeFirewallRules(deps, signal), signal);
  const cgroups = await step(() => removeCgroups(ours, bundles, { ...deps, hierarchies }, signal), signal);
  const files = await step(() => removeFiles(bundles, options, deps), signal);
  const problems = [processes, mounts, interfaces, rules, cgroups, files].flatMap((done) => done.problems);
  return {
    processes: processes.removed,
    mounts: mounts.removed,
    interfaces: interfaces.removed,
    firewallRules: rules.removed,
    cgroups: cgroups.removed,
    files: files.removed,
    problems,
  };
}

async function step(work: () => Promise<Removal>, signal: AbortSignal): Promise<Removal> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    return { removed: [], problems: [describeError(error)] };
  }
}

/**
 * Unmounts everything below the directory of the instance, such as network namespaces in its state
 * directory. Separate disks mounted at containerd's root or state directory stay mounted.
 */
async function unmountOwn(deps: TeardownDeps, signal: AbortSignal): Promise<Removal> {
  const { dir, root, state } = deps.layout;
  return await unmountBelow(dir, { ...deps, keep: [root, state] }, signal);
}

async function removeFirewallRules(deps: TeardownDeps, signal: AbortSignal): Promise<Removal> {
  // The CNI plugins use the same iptables program, so without it they cannot have created rules.
  if (deps.iptables === undefined) return { removed: [], problems: [] };
  return await removeRules(deps.iptables, deps.layout.network, deps.run, signal);
}

async function removeCgroups(
  ours: readonly string[],
  bundles: readonly Bundle[],
  { hierarchies, clock }: { readonly hierarchies: readonly string[]; readonly clock: Clock },
  signal: AbortSignal,
): Promise<Removal> {
  const host = realCgroupHost();
  const done: Removal[] = [];
  for (const cgroup of ours) {
    done.push(await removeCgroup(host, cgroupDirectories(hierarchies, cgroup), clock, signal));
  }
  // The parent cgroup is shared with other containerd instances and removed only when it is empty.
  const parents = new Set(['/k8s.io', ...bundles.map(({ namespace }) => `/${namespace}`)]);
  for (const parent of parents) {
    const removed = await removeEmptyCgroup(host, cgroupDirectories(hierarchies, parent));
    done.push({ removed, problems: [] });
  }
  return { removed: done.flatMap((one) => one.removed), problems: done.flatMap((one) => one.problems) };
}
