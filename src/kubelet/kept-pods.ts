import type { PodJournal } from '../pods/index.ts';
import { CrashBackoff, idsOfBlock, UserNamespaces } from '../runtime/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { PlainVolumes } from './plain-volumes.ts';
import { mountPoints, PodDirectories } from './pod-files.ts';
import { PodNotebook } from './pod-notebook.ts';
import type { KubeletSettings } from './settings.ts';

export interface KeptPodsDeps extends Pick<KubeletDeps, 'clock' | 'random' | 'logger' | 'machine'> {
  readonly journal: Pick<PodJournal, 'event'>;
}

/** What of pods outlives the kubelet: their directories, and all that is in there. */
export class KeptPods {
  readonly directories: PodDirectories;
  readonly users: UserNamespaces;
  readonly volumes: PlainVolumes;
  readonly notes: PodNotebook;
  /** Noted with the pod, so that it goes on where it was. */
  readonly crashBackoff: CrashBackoff;
  readonly #clock: KeptPodsDeps['clock'];

  constructor(settings: KubeletSettings, { clock, random, logger, machine, journal }: KeptPodsDeps) {
    const { files, volumeParts } = machine;
    this.#clock = clock;
    const directories = new PodDirectories(
      settings.rootDir,
      files,
      () => mountPoints(machine),
      (directory, inner) => volumeParts.unbind(directory, inner),
    );
    this.directories = directories;
    this.users = new UserNamespaces({
      logger,
      files,
      podsDir: directories.podsDir,
      idsPerPod: settings.idsPerPod ?? idsOfBlock,
      ids: settings.userIds,
    });
    this.volumes = new PlainVolumes(directories, files, journal);
    this.notes = new PodNotebook({
      clock,
      logger,
      files,
      directories,
      readBoot: () => machine.readFile('/proc/sys/kernel/random/boot_id'),
    });
    this.crashBackoff = new CrashBackoff({
      random,
      maxMs: settings.maxRestartWaitMs,
      keep: (uid, entries) => this.notes.restarted(uid, entries),
    });
  }

  /** What earlier kubelets have noted; before anything is done to a pod. */
  async open(): Promise<void> {
    await Promise.all([this.notes.open(), this.users.open()]);
    this.crashBackoff.restore(this.notes.restarts(), this.#clock.now());
  }

  /** Back-offs that are over need not be remembered. */
  collectBackoffs(): void {
    this.crashBackoff.collect(this.#clock.now());
  }
}
