import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LoopDisk } from './loop-disk.ts';

/** A small private disk of the test, whose file system is mounted until it is disposed. */
export class MountedDisk implements Disposable {
  /** The mount point of the disk. */
  readonly path: string;
  readonly #folder: string;
  readonly #disk: LoopDisk;

  constructor({ inodes }: { readonly inodes?: number } = {}) {
    this.#folder = mkdtempSync(join(tmpdir(), 'klg-disk-'));
    this.path = join(this.#folder, 'mounted');
    this.#disk = new LoopDisk(join(this.#folder, 'image'));
    try {
      this.#disk.format('ext4', ...(inodes === undefined ? [] : ['-N', String(inodes)]));
      mkdirSync(this.path);
      execFileSync('mount', [this.#disk.device, this.path]);
    } catch (error) {
      this.#remove();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['--lazy', this.path]);
    this.#remove();
  }

  #remove(): void {
    this.#disk[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
