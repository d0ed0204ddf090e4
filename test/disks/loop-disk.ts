import { execFileSync } from 'node:child_process';
import { rmSync, truncateSync, writeFileSync } from 'node:fs';

const sizeBytes = 64 * 1024 * 1024;

/** A block device of the machine that is backed by a file of the test. */
export class LoopDisk implements Disposable {
  readonly file: string;
  readonly device: string;

  constructor(file: string, bytes = sizeBytes) {
    this.file = file;
    writeFileSync(file, '');
    truncateSync(file, bytes);
    this.device = run('losetup', '--find', '--show', file);
  }

  /** Resizes the disk; its file system keeps its size. */
  resize(bytes: number): void {
    truncateSync(this.file, bytes);
    run('losetup', '--set-capacity', this.device);
  }

  /** Creates a file system; `more` contains further options of mkfs. */
  format(type: 'ext4' | 'xfs' = 'ext4', ...more: readonly string[]): void {
    run(`mkfs.${type}`, '-q', type === 'ext4' ? '-F' : '-f', ...more, this.device);
  }

  /** Damages the file system so that fsck cannot repair it automatically. */
  damage(): void {
    for (const request of ['clri <2>', 'set_super_value state 2'])
      run('debugfs', '-w', '-R', request, this.device);
  }

  /** Overwrites the first bytes of the disk. */
  write(data: Buffer): void {
    writeFileSync(this.device, data, { flag: 'r+', flush: true });
  }

  /** Returns the type of the file system, or an empty string. */
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
