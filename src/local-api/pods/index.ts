export { AutoBinder, type AutoBinderOptions } from './auto-binder.ts';
export { olderBindingRules } from './binding.ts';
export { podRules } from './rules.ts';
