import type { CriClient } from '../../cri/index.ts';
import { isKind, SingleFlight } from '../../lib/index.ts';
import { containerLogLink } from '../logs/log-paths.ts';
import type { RuntimeFiles } from '../runtime-files.ts';
import { readOwner } from './labels.ts';
import { lastWordsFile } from './termination-message.ts';

export interface ContainerRemoverDeps {
  readonly cri: Pick<CriClient, 'containerStatus' | 'removeContainer'>;
  readonly files: RuntimeFiles;
  /** Where the links to all logs are. */
  readonly logLinksDir: string;
  /** Told of each container that is gone. */
  readonly removed: (id: string) => void;
}

/** Removes dead containers. One that is gone already counts as removed. */
export class ContainerRemover {
  readonly #deps: ContainerRemoverDeps;
  /** Several may want the same one gone, and runtimes refuse to remove what is being removed. */
  readonly #removals = new SingleFlight<string, unknown>();

  constructor(deps: ContainerRemoverDeps) {
    this.#deps = deps;
  }

  /** Its logs go first, so that a container whose logs cannot be removed is found again. */
  async remove(containerId: string, logs: 'with-logs' | 'keep-logs', signal: AbortSignal): Promise<void> {
    try {
      if (logs === 'with-logs') await this.#removeLogs(containerId, signal);
      const remove = (inner: AbortSignal) => this.#deps.cri.removeContainer({ containerId }, inner);
      await this.#removals.run(containerId, remove, signal);
    } catch (error) {
      if (!isKind(error, 'NotFound')) throw error;
    }
    this.#deps.removed(containerId);
  }

  async #removeLogs(containerId: string, signal: AbortSignal): Promise<void> {
    const { cri, files, logLinksDir } = this.#deps;
    const { status } = await cri.containerStatus({ containerId }, signal);
    if (status === undefined) return;
    const owner = readOwner(status.labels);
    const lastWords = lastWordsFile(status);
    if (lastWords !== undefined) await files.remove(lastWords);
    if (owner !== undefined) await files.remove(containerLogLink(logLinksDir, { ...owner, containerId }));
    if (status.logPath !== '') await files.removeLogs(status.logPath);
  }
}
