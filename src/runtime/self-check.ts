import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CriClient, PodSandboxConfig } from '../cri/index.ts';
import { type Clock, isKind, KubelingError, type Random, randomHex, withDeadline } from '../lib/index.ts';
import type { MessageInit } from '../protocols/protobuf/index.ts';

export interface SelfCheckDeps {
  readonly cri: CriClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Called after each step of the self-check with its duration. */
  readonly tell: (step: string, ms: number) => void;
}

export interface SelfCheckPlan {
  /** An image with a shell for the container; undefined to start only a sandbox. */
  readonly image: string | undefined;
  /** Directory for the container's log; the self-check creates and removes it. */
  readonly logDirectory: string;
  readonly cgroupParent: string;
}

/** Label of the self-check's sandboxes, by which a sandbox left over from a crash is found. */
export const selfCheckLabel = 'kubeling.dev/self-check';

const greeting = 'hello from a container';
const limitMs = 60_000;
const cleanupMs = 30_000;

/** Starts a sandbox and a container, reads the container's output, and always removes both. */
export async function selfCheck(
  plan: SelfCheckPlan,
  deps: SelfCheckDeps,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = deps;
  await removeLeftovers(deps.cri, signal);
  // The directory is removed first, because the runtime would append to the log of an interrupted
  // self-check.
  await rm(plan.logDirectory, { recursive: true, force: true });
  await withDeadline(
    { clock, ms: limitMs, what: 'finish the self-check' },
    async (inner) => {
      const config = sandboxConfig(plan, deps.random);
      const { podSandboxId } = await timed(
        deps,
        (answer) => `sandbox ${short(answer.podSandboxId)} runs`,
        () => deps.cri.runPodSandbox({ config }, inner),
      );
      try {
        await tellAddress(podSandboxId, deps, inner);
        if (plan.image !== undefined) await tryContainer(podSandboxId, config, plan.image, deps, inner);
      } finally {
        await cleanUp(podSandboxId, plan, deps);
      }
    },
    signal,
  );
}

function sandboxConfig(plan: SelfCheckPlan, random: Random): MessageInit<PodSandboxConfig> {
  const uid = randomHex(random, 32);
  return {
    metadata: { name: 'self-check', namespace: 'kubeling', uid, attempt: 0 },
    hostname: 'self-check',
    logDirectory: plan.logDirectory,
    labels: { [selfCheckLabel]: 'true' },
    linux: { cgroupParent: plan.cgroupParent, securityContext: { namespaceOptions: { pid: 'CONTAINER' } } },
  };
}

async function tellAddress(podSandboxId: string, deps: SelfCheckDeps, signal: AbortSignal): Promise<void> {
  await timed(
    deps,
    ({ status }) => `its address is ${status?.network?.ip || 'the host’s'}`,
    () => deps.cri.podSandboxStatus({ podSandboxId }, signal),
  );
}

async function tryContainer(
  podSandboxId: string,
  sandbox: MessageInit<PodSandboxConfig>,
  image: string,
  deps: SelfCheckDeps,
  signal: AbortSignal,
): Promise<void> {
  const { cri } = deps;
  const logDirectory = sandbox.logDirectory ?? '';
  await mkdir(logDirectory, { recursive: true, mode: 0o755 });
  const { containerId } = await timed(
    deps,
    (answer) => `container ${short(answer.containerId)} is created`,
    () =>
      cri.createContainer(
        {
          podSandboxId,
          sandboxConfig: sandbox,
          config: {
            metadata: { name: 'hello', attempt: 0 },
            image: { image },
            command: ['sh', '-c', `echo ${greeting}`],
            logPath: 'hello.log',
          },
        },
        signal,
      ),
  );
  await timed(
    deps,
    () => 'it is started',
    () => cri.startContainer({ containerId }, signal),
  );
  await timed(
    deps,
    (code) => `it exits with ${code}`,
    () => exitCode(containerId, deps, signal),
  );
  await timed(
    deps,
    (output) => `it said "${output}"`,
    () => readGreeting(join(logDirectory, 'hello.log')),
  );
}

async function exitCode(
  containerId: string,
  { cri, clock }: SelfCheckDeps,
  signal: AbortSignal,
): Promise<number> {
  for (;;) {
    const { status } = await cri.containerStatus({ containerId }, signal);
    if (status?.state === 'CONTAINER_EXITED') {
      if (status.exitCode === 0) return 0;
      throw new KubelingError(
        'SELF_CHECK',
        `The self-check's container exited with ${status.exitCode}: ${status.reason} ${status.message}`,
      );
    }
    await clock.sleep(20, signal);
  }
}

async function readGreeting(path: string): Promise<string> {
  const content = await readFile(path, 'utf8');
  const output = content.trimEnd().split(' ').slice(3).join(' ');
  if (output === greeting) return output;
  throw new KubelingError(
    'SELF_CHECK',
    `The self-check's log ${path} must contain "${greeting}": it contains "${output}"`,
  );
}

/**
 * The clean-up has a separate deadline, because it must run even after the self-check was aborted.
 */
async function cleanUp(podSandboxId: string, plan: SelfCheckPlan, deps: SelfCheckDeps): Promise<void> {
  const remove = async (signal: AbortSignal) => {
    await removeSandbox(deps.cri, podSandboxId, signal);
    await rm(plan.logDirectory, { recursive: true, force: true });
  };
  await timed(
    deps,
    () => 'sandbox and container are removed',
    () =>
      withDeadline(
        { clock: deps.clock, ms: cleanupMs, what: 'remove the self-check' },
        remove,
        new AbortController().signal,
      ),
  );
}

async function removeLeftovers(cri: CriClient, signal: AbortSignal): Promise<void> {
  const { items } = await cri.listPodSandbox(
    { filter: { labelSelector: { [selfCheckLabel]: 'true' } } },
    signal,
  );
  for (const { id } of items) await removeSandbox(cri, id, signal);
}

/** Stops and removes a sandbox with its containers; a missing sandbox counts as removed. */
export async function removeSandbox(
  cri: CriClient,
  podSandboxId: string,
  signal: AbortSignal,
): Promise<void> {
  await cri.stopPodSandbox({ podSandboxId }, signal).catch((error) => {
    if (!isKind(error, 'NotFound')) throw error;
  });
  await cri.removePodSandbox({ podSandboxId }, signal);
}

async function timed<T>(
  { clock, tell }: SelfCheckDeps,
  step: (value: T) => string,
  work: () => Promise<T>,
): Promise<T> {
  const start = clock.monotonicMs();
  const value = await work();
  tell(step(value), clock.monotonicMs() - start);
  return value;
}

function short(id: string): string {
  return id.slice(0, 12);
}
