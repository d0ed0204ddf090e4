export {
  type AllocationTerms,
  anywhere,
  type HintProvider,
  type TopologyHint,
  type TopologyHints,
} from './hint-provider.ts';
