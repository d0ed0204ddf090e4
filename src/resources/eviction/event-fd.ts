import { closeSync, read, writeSync } from 'node:fs';
import { libcFunctions } from '../../lib/index.ts';

const countBytes = 8;
const closeOnExec = 0o2_000_000;

/** What the kernel counts up when something happens that it was told to watch; one may wait for that. */
export class EventFd implements Disposable {
  readonly fd: number;
  #use: 'unused' | 'waited-for' | 'closed' = 'unused';

  private constructor(fd: number) {
    this.fd = fd;
  }

  /** Undefined where Node cannot make one. */
  static open(): EventFd | undefined {
    const { eventfd } = libcFunctions({ eventfd: { arguments: ['uint32', 'int32'], return: 'int32' } });
    const fd = eventfd?.(0, closeOnExec) ?? -1;
    return fd < 0 ? undefined : new EventFd(fd);
  }

  /**
   * Calls back at the first event, and never once it is disposed of; to be asked once. Until then it holds one of the
   * threads that all of the process's files share.
   */
  onEvent(happened: () => void): void {
    if (this.#use !== 'unused') throw new Error('An event is waited for once');
    this.#use = 'waited-for';
    read(this.fd, Buffer.alloc(countBytes), 0, countBytes, null, (error) => {
      const isWanted = this.#use === 'waited-for' && error === null;
      this.#use = 'closed';
      closeSync(this.fd);
      if (isWanted) happened();
    });
  }

  /** Whoever reads it holds it open: that one is woken, and closes it. */
  [Symbol.dispose](): void {
    const use = this.#use;
    this.#use = 'closed';
    if (use === 'unused') closeSync(this.fd);
    if (use === 'waited-for') writeSync(this.fd, Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0));
  }
}
