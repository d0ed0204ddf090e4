import { execFileSync } from 'node:child_process';
import { rmSync, truncateSync, writeFileSync } from 'node:fs';

const sizeBytes = 64 * 1024 * 1024;

/** A disk of the machine whose content is a file of the test's. */
export class LoopDisk implements Disposable {
  readonly file: string;
  readonly device: string;

  constructor(file: string, bytes = sizeBytes) {
    this.file = file;
    writeFileSync(file, '');
    truncateSync(file, bytes);
    this.device = run('losetup', '--find', '--show', file);
  }

  /** What is on it stays as large as it is. */
  resize(bytes: number): void {
    truncateSync(this.file, bytes);
    run('losetup', '--set-capacity', this.device);
  }

  /** More options are those of the program that makes the file system. */
  format(type: 'ext4' | 'xfs' = 'ext4', ...more: readonly string[]): void {
    run(`mkfs.${type}`, '-q', type === 'ext4' ? '-F' : '-f', ...more, this.device);
  }

  /** Damages its file system beyond what can be mended without asking. */
  damage(): void {
    for (const request of ['clri <2>', 'set_super_value state 2'])
      run('debugfs', '-w', '-R', request, this.device);
  }

  /** Of the first bytes. */
  write(data: Buffer): void {
    writeFileSync(this.device, data, { flag: 'r+', flush: true });
  }

  /** The type of its file system, or nothing. */
  type(): string {
    try {
      return run('blkid', '-p', '-s', 'TYPE', '-o', 'value', this.device);
    } catch {
      return '';
    }
  }

  [Symbol.dispose](): void {
    run('losetup', '--detach', this.device);
    rmSync(this.file, { force: true });
  }
}

function run(file: string, ...args: readonly string[]): string {
  return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}
