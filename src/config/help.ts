import { formatFlagHelp } from '../lib/index.ts';
import { kubeletFlagTable } from './command-line.ts';

/** Everything `kubeling run` takes, for `--help`. */
export function kubeletFlagHelp(width = 100): string {
  return `Usage: kubeling run [flags]

Runs the pods of this node. Values come from the defaults, then --config, then --config-dir in the order of
the names, then the flags; the last one counts. Flags may be written with - or _.

${formatFlagHelp(kubeletFlagTable(), width)}`;
}
