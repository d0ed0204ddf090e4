export {
  type AllocationTerms,
  anywhere,
  type HintProvider,
  type TopologyHint,
  type TopologyHints,
  unaligned,
} from './hint-provider.ts';
